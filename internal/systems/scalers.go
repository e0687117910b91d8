package systems

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/scale"
)

// fixed is the scaler of systems that name none.
const fixed = "fixed"

var scalers = []registered[func(Options) scale.Scaler]{
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
	{
		"uncovered", "plans again when the load exceeds the rates that the plan has policies for, and when a worker " +
			"is lost or back", "RAMSIS §3.2.2",
		func(Options) scale.Scaler { return scale.Uncovered{} },
	},
	{
		"mixshift", "plans again when the sizes of queries shift, when a worker is lost or back, and when a price or " +
			"a latency changes", "Kairos §8.4",
		func(o Options) scale.Scaler { return scale.NewMixShift(o.Replan) },
	},
	{
		ratebands, "plans again when a rate leaves the band that its instances work well in, and lets idle apps " +
			"go", "INFless §3.2, §3.5",
		newRateBands,
	},
	{
		"complexity", "plans again when the content of queries makes more or less work, when the demand changes, and " +
			"when a worker is lost or back", "Scrooge §3.5",
		func(o Options) scale.Scaler { return scale.NewComplexity(o.Replan, o.Following.Change) },
	},
	{
		"arrivals", "plans again every second, and at once when the demand bursts or a worker is lost or back",
		"INFaaS, ATC 2021; Proteus §6.1.1",
		newArrivals,
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

// arrivalsInterval is how often plans are made as queries arrive. No program can be solved more often.
const arrivalsInterval = time.Second

// newArrivals plans every second and, when the demand exceeds the plan, as soon as arrivals show it.
func newArrivals(o Options) scale.Scaler {
	return scale.Replan{
		Interval: cmp.Or(o.Replan, arrivalsInterval), Bursts: true, Pause: 100 * time.Millisecond, Plain: true,
	}
}
