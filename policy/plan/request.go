package plan

import (
	"context"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Request is the input of a planner: everything that a plan is made from, of one instant. Nobody changes the data that
// it refers to, so that a planner may work while the fleet, the spec and what is known of it go on.
type Request struct {
	Spec     *serving.Spec
	Snapshot *fleet.Snapshot // nil before anything runs
	// Rates are by AppID the observed demand in queries/s. Apps beyond its end count as not called.
	Rates []float64
	// Recent is by AppID the mean demand of the last seconds in queries/s, without what may come; nil where it is not
	// known.
	Recent []float64
	// Dispersions are by AppID how unevenly queries were seen to arrive (monitor.View.Dispersion): 1 as by chance,
	// above it in clumps. Nil, or too short, is 1; read them through Dispersion.
	Dispersions []float64
	// Mixes are by AppID the observed sizes of queries; nil, or too short, takes the expected ones (serving.App.Mix).
	Mixes []serving.Mix
	// Beliefs are the latencies believed now, if latency is learned while serving or batches were seen to balloon. They
	// do not change any more. Nil means the profile that the planner was made with; see Believed.
	Beliefs profile.Profile
	// Prices are by DeviceTypeID the rent of a machine in $/h; nil takes those of Spec. Read them through Price.
	Prices []float64
	// FanOuts is by StageID and edge the items seen to be sent for each item served, nil where as configured.
	// Ballooning is by StageID the run times seen, relative to those believed before, nil where they are 1. Spec and
	// Beliefs have both in them already.
	FanOuts    [][]float64
	Ballooning []float64
	// Known is what was measured of Spec. Nil means what the planner was made with.
	Known *Known
	// Experience is of pools that have served, where the scaler judges them; nil otherwise. Planners do not change it.
	Experience *Experience
}

// Known is what was measured of a spec, and the latencies that were believed of it before anything was learned.
type Known struct {
	Measurements serving.Measurements
	Profile      profile.Profile // made of Measurements; nil where nothing was measured
}

// Restricted returns what is known of the open variants, in their identifiers.
func (k *Known) Restricted(o *serving.Open) *Known {
	if k == nil {
		return nil
	}
	out := &Known{}
	if k.Profile != nil {
		out.Profile = profile.Renumbered{Profile: k.Profile, Variants: o.Variants}
	}
	out.Measurements = k.Measurements.Of(func(v serving.VariantID, _ serving.DeviceTypeID) (serving.VariantID, bool) {
		v = o.VariantOf[v]
		return v, v != serving.None
	})
	return out
}

// Dispersion returns how unevenly queries of an app arrive, at least 1.
func (r *Request) Dispersion(a serving.AppID) float64 {
	if int(a) < len(r.Dispersions) {
		return max(r.Dispersions[a], 1)
	}
	return 1
}

// Price returns the rent of a machine of a type in $/h. Every planner that forecasts or compares costs uses it: prices
// change while a server runs.
func (r *Request) Price(d serving.DeviceTypeID) float64 {
	if r.Prices != nil {
		return r.Prices[d]
	}
	return r.Spec.DeviceTypes[d].PricePerHour
}

// CostPerHour returns the rent in $/h of the workers that run any of the instances. A worker counts once, however many
// of the instances it runs.
func (r *Request) CostPerHour(instances []Instance) (sum float64) {
	counted := make([]bool, len(r.Spec.Workers))
	for i := range instances {
		if w := instances[i].Worker; !counted[w] {
			counted[w] = true
			sum += r.Price(r.Spec.Workers[w].DeviceType)
		}
	}
	return sum
}

// Mix returns the sizes of queries of an app to plan for. It points into the request or its spec.
func (r *Request) Mix(a serving.AppID) *serving.Mix {
	if int(a) < len(r.Mixes) {
		return &r.Mixes[a]
	}
	return &r.Spec.Apps[a].Mix
}

// Believed returns the profile to plan with: Beliefs, or made if there are none. made is the profile that the planner
// was made with.
func (r *Request) Believed(made profile.Profile) profile.Profile {
	if r.Beliefs != nil {
		return r.Beliefs
	}
	return made
}

// Planner makes plans. It must be deterministic: it is bounded by gap and node count rather than by time, so that the
// same request has the same answer on every machine. The data plane ends ctx after a timeout.
type Planner interface {
	// Name returns the planner's registry name.
	Name() string
	// Provides returns the sections that its plans carry.
	Provides() Sections
	// Plan answers a request, or fails with the reason that makes it impossible.
	Plan(ctx context.Context, r Request) (*Plan, error)
}

// NewPlan begins the answer of a planner. It says nothing of violations yet.
func (r *Request) NewPlan(planner string) *Plan {
	out := &Plan{Planner: planner, Forecast: Forecast{Violation: -1}}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	return out
}
