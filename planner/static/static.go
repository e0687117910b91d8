// Package static is the planner for placements that a person wrote down: it turns them into a plan with batch limits
// from the objective (largest batch within half the SLO, Proteus §4) and shares in proportion to what each instance can
// carry.
package static

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Instance is a placement as written down; zero fields are filled in by the planner.
type Instance struct {
	Worker   serving.WorkerID
	Stage    serving.StageID
	Variants []serving.VariantID // the first is the active one
	Slots    int                 // 0 means 1
	Cores    int                 // 0 leaves it to the runtime
	Limit    int                 // items; 0 derives it from the objective
	Share    float64             // 0 for all instances of a stage derives shares from capacity
}

// Planner answers every request with the same placement, and with what Spread adds.
type Planner struct {
	Profile   profile.Profile
	Instances []Instance
	// Fraction of the stage's share of the SLO that a batch may take; 0 means one half (Proteus §4: a query that just
	// missed a batch must still make the next).
	Fraction float64
	// Spread places stages that Instances leaves out, so that apps may come and go.
	Spread bool
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "static" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.Holds }

// Plan implements plan.Planner. It fails when an active variant is too slow to answer a single item within the
// objective.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	fraction := p.Fraction
	if fraction == 0 {
		fraction = 0.5
	}
	// what is written down runs before it is known how fast
	believed := profile.Fallback{Primary: r.Believed(p.Profile), Secondary: p.Profile}
	out := &plan.Plan{Planner: p.Name(), Forecast: plan.Forecast{Violation: -1}}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	instances := p.Instances
	var places []int32 // of those that are spread
	if p.Spread {
		more := p.placeRest(&r)
		instances = slices.Clone(instances)
		for _, x := range more {
			instances, places = append(instances, x.Instance), append(places, x.place)
		}
	}
	capacity := make([]float64, len(instances))
	total := make([]float64, len(r.Spec.Stages))
	given := make([]float64, len(r.Spec.Stages))
	for n, i := range instances {
		if i.Worker < 0 || int(i.Worker) >= len(r.Spec.Workers) {
			return nil, fmt.Errorf("placement %d: worker %d does not exist", n, i.Worker)
		}
		if i.Stage < 0 || int(i.Stage) >= len(r.Spec.Stages) || len(i.Variants) == 0 {
			return nil, fmt.Errorf("placement %d: stage %d does not exist, or no variant is named", n, i.Stage)
		}
		worker := r.Spec.Workers[i.Worker]
		app := r.Spec.Apps[r.Spec.Stages[i.Stage].App]
		within := time.Duration(float64(app.SLO.Latency-app.Slack) / float64(Depth(r.Spec, i.Stage)))
		slots := max(i.Slots, 1)
		item := plan.Instance{
			Worker: i.Worker, Place: int32(n) + 1, Stage: i.Stage, Slots: slots, Cores: i.Cores, Share: i.Share,
		}
		if n >= len(p.Instances) {
			item.Place = places[n-len(p.Instances)]
		}
		for at, v := range i.Variants {
			if v < 0 || int(v) >= len(r.Spec.Variants) {
				return nil, fmt.Errorf("placement %d: variant %d does not exist", n, v)
			}
			limit := profile.BatchLimit(believed, r.Spec, v, worker.DeviceType, slots,
				time.Duration(fraction*float64(within)))
			if limit == 0 && believed.Latency(v, worker.DeviceType, 1, slots) <= within {
				limit = 1 // meets the objective alone, though a query that just missed a run will not
			}
			if i.Limit > 0 {
				limit = min(i.Limit, r.Spec.Variants[v].MaxBatch)
			}
			if limit == 0 {
				if at == 0 {
					return nil, fmt.Errorf("placement %d: variant %q takes %v for one item on device type %q, the "+
						"objective leaves %v: choose a faster variant or raise the SLO",
						n, r.Spec.Variants[v].Name, believed.Latency(v, worker.DeviceType, 1, slots),
						r.Spec.DeviceTypes[worker.DeviceType].Name, within)
				}
				continue // a spare variant that never fits is simply not loaded
			}
			item.Variants = append(item.Variants, plan.Variant{Variant: v, Limit: limit})
		}
		active := item.Variants[0]
		run := believed.Latency(active.Variant, worker.DeviceType, active.Limit, slots)
		item.Hold = max(within-run, 0) // INFless §3.2: the time-out is the objective less the execution time
		capacity[n] = float64(slots*active.Limit) / run.Seconds()
		total[i.Stage] += capacity[n]
		given[i.Stage] += i.Share
		out.Instances = append(out.Instances, item)
	}
	for n := range out.Instances {
		i := &out.Instances[n]
		if given[i.Stage] > 0 {
			i.Share /= given[i.Stage]
		} else {
			i.Share = capacity[n] / total[i.Stage]
		}
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	p.forecast(out, r.Spec, total)
	return out, out.Validate(r.Spec)
}

// forecast fills in what the placement can carry: the narrowest stage of each app bounds it.
func (p *Planner) forecast(out *plan.Plan, spec *serving.Spec, capacity []float64) {
	var throughput, accuracy float64
	for _, a := range spec.Apps {
		carries, right, first := 0.0, 1.0, true
		for _, s := range a.Stages {
			if first || capacity[s] < carries {
				carries, first = capacity[s], false
			}
			mean := 0.0
			for _, i := range out.Instances {
				if i.Stage == s {
					mean += i.Share * spec.Variants[i.Variants[0].Variant].Accuracy
				}
			}
			right *= mean
		}
		throughput += carries
		accuracy += carries * right
	}
	out.Forecast.Throughput = throughput
	if throughput > 0 {
		out.Forecast.Accuracy = accuracy / throughput
	}
}

// Depth returns the number of stages on the longest path through the app that contains s, at least 1: without budgets
// from a planner each stage of it gets an equal part of the objective.
func Depth(spec *serving.Spec, s serving.StageID) int {
	app := spec.Apps[spec.Stages[s].App]
	depth := make(map[serving.StageID]int, len(app.Stages))
	longest := 1
	for _, at := range app.Stages {
		depth[at] = max(depth[at], 1)
		longest = max(longest, depth[at])
		for _, e := range spec.Stages[at].Next {
			depth[e.To] = max(depth[e.To], depth[at]+1)
		}
	}
	return longest
}
