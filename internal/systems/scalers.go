package systems

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/policy/scale"
)

// fixed is the scaler of systems that name none.
const fixed = "fixed"

var scalers = slices.Concat(generalScalers, ramsisScalers, kairosScalers, inflessScalers, scroogeScalers, infaasScalers)

var generalScalers = scalerTable{
	{
		fixed, "never plans again", "ours",
		func(Options) scale.Scaler { return scale.Fixed{} },
	},
	{
		"periodic", "plans again at an interval", "Proteus §3",
		func(o Options) scale.Scaler { return scale.Replan{Interval: o.Replan, Plain: true} },
	},
	{
		"replan", "plans again at an interval, when the demand bursts, and when a worker is lost or back",
		"Proteus §3, §6.1.5",
		func(o Options) scale.Scaler { return scale.Replan{Interval: o.Replan, Bursts: true} },
	},
	{
		"anticipate", "plans again for a forecast of the demand: at an interval, when it exceeds the plan, and when " +
			"a worker is lost or back", "ours",
		func(o Options) scale.Scaler {
			return &scale.Anticipate{Interval: o.Replan, Certain: o.Planning.Certain}
		},
	},
}

// Scalers returns the names of all scalers.
func Scalers() []string { return namesOf(scalers) }

// NewScaler returns a fresh rule by name; "" is fixed.
func NewScaler(name string, o Options) (scale.Scaler, error) {
	fresh, err := find(Scaler, scalers, cmp.Or(name, fixed))
	if err != nil {
		return nil, err
	}
	return fresh(o), nil
}

// AtLeast returns a demand in queries/s by AppID with as much for each app as the system asks for at least in plans of
// its own: the first plan, which is made before it asks, is for as much.
func (s System) AtLeast(rates []float64) []float64 {
	out := slices.Clone(rates)
	rule, err := NewScaler(s.Scaler, s.Options)
	if err != nil {
		return out
	}
	for a := range out {
		out[a] = max(out[a], rule.Traits().Least)
	}
	return out
}
