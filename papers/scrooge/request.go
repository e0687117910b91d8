package scrooge

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// request is a plan.Request as allocation and placement see it. Machine types are numbered as the spec's device types.
type request struct {
	slackFactor float64 // the objective divided by the part of it that is planned with
	o           Options
	spec        *serving.Spec
	believed    profile.Profile
	running     []fleet.InstanceSnapshot // what can be had without a load
	prices      []float64                // by device type, in $/h, above 0
	unpriced    bool                     // no type has a price
	workers     [][]serving.WorkerID     // by device type: those that are up
	pipelines   []pipeline
	rates       []float64 // queries/s by AppID, head-room included
}

// pipeline is an app.
type pipeline struct {
	app    serving.AppID
	stages []stage // in the app's order
	budget time.Duration
}

// stage is a module with its modes.
type stage struct {
	id   serving.StageID
	rate float64 // items/s at all of the demand
	// indices in the pipeline
	next  []int
	modes []Mode // Tag is the VariantID
}

// unpricedCost is the cost of a type without a price, as a part of the highest price. It is above 0, so that fewer
// machines are preferred.
const unpricedCost = 1e-6

// saved is what leaving a machine of a type idle saves, in $/h: its price, but for machines that are owned.
func saved(r *plan.Request, d serving.DeviceTypeID) float64 {
	if r.Spec.DeviceTypes[d].Tenure == serving.Owned {
		return 0
	}
	return r.Price(d)
}

// leastAccuracy is the least accuracy of the variants that a stage may use.
func (c *margin) leastAccuracy(spec *serving.Spec, s serving.StageID) float64 {
	if c.keepTargets {
		return spec.AccuracyForTarget(s)
	}
	return spec.Apps[spec.Stages[s].App].Floor
}

// read reads a request with a margin.
func (p *Planner) read(r plan.Request, c margin) *request {
	x := &request{o: p.Options, spec: r.Spec, believed: r.Believed(p.Profile)}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.running, x.workers = capacity.Reusable(r.Snapshot), capacity.UsableWorkers(r.Spec, down)
	x.unpriced, x.slackFactor = true, 1/c.part
	for d := range r.Spec.DeviceTypes {
		x.prices = append(x.prices, saved(&r, serving.DeviceTypeID(d)))
		x.unpriced = x.unpriced && x.prices[d] <= 0
	}
	highestPrice := slices.Max(append(x.prices, 0))
	for d := range x.prices {
		if x.unpriced {
			x.prices[d] = 1 // without prices, machines are counted
		}
		x.prices[d] = max(x.prices[d], highestPrice*unpricedCost)
	}
	x.rates = capacity.Rates(&r, p.Options.Headroom)
	asked := capacity.StageDemands(r.Spec, x.rates)
	for a := range r.Spec.Apps {
		app := &r.Spec.Apps[a]
		g := pipeline{app: serving.AppID(a), budget: time.Duration(c.part * float64(app.SLO.Latency-app.Slack))}
		at := make(map[serving.StageID]int, len(app.Stages))
		for k, s := range app.Stages {
			at[s] = k
		}
		for _, s := range app.Stages {
			st := stage{
				id: s, rate: max(asked[s].Rate, capacity.MinRate),
				modes: x.modes(s, c.leastAccuracy(r.Spec, s), broken),
			}
			x.addBursts(&st, c.burstFactor*st.rate/max(x.rates[a], capacity.MinRate))
			for _, e := range r.Spec.Stages[s].Next {
				if to := at[e.To]; !slices.Contains(st.next, to) {
					st.next = append(st.next, to)
				}
			}
			g.stages = append(g.stages, st)
		}
		x.pipelines = append(x.pipelines, g)
	}
	return x
}
