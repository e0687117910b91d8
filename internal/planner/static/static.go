// Package static makes plans from placements that a person has written down. It adds batch limits from the objective
// (the largest batch within half the SLO, Proteus §4), and shares in proportion to the rate that each instance carries.
package static

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Instance is a placement as written down. The planner fills in zero fields.
type Instance struct {
	Worker   serving.WorkerID
	Stage    serving.StageID
	Variants []serving.VariantID // the first is the active one
	Slots    int                 // 0 means 1
	Cores    int                 // threads of a run; 0 for all of its worker's
	Part     int32               // 1 + the device type of the part of its worker that it has; 0 for a share of all
	Limit    int                 // items; 0 takes the limit from the objective
	Share    float64             // 0 for all instances of a stage takes shares from their rates
}

// defaultFraction leaves the other half of the objective to a query that has just missed a batch (Proteus §4).
const defaultFraction = 0.5

// Planner answers every request with the same placement, extended by Spread. It keeps nothing between plans.
type Planner struct {
	Profile   profile.Profile
	Instances []Instance
	// Fraction of the stage's budget that a batch may take; 0 means one half.
	Fraction float64
	// Spread places stages that Instances leaves out, so that apps may come and go.
	Spread bool
	// Proposed tells that nobody has written Instances down: they are one of each stage on each worker, and load what
	// is fast enough there and fits. Otherwise each loads all that it lists.
	Proposed bool
	// ByDemand has proposed instances run the most accurate variant that carries the demand of the request, for systems
	// that choose none by themselves. Otherwise they run the first in the order of the configuration.
	ByDemand bool
	// Unbatched tells that proposed instances run queries one at a time.
	Unbatched bool
	// Pooled tells that one rule decides for all stages and machines which batch runs where. A batch may then take all
	// of its app's objective: the rule knows what time its queries have left.
	Pooled bool
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "static" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.BatchTimeouts }

// Plan implements plan.Planner. It fails when a placement names what does not exist, or its active variant is too slow
// to answer a single item within the objective. A proposed placement fails when a stage is left with nothing.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	out := r.NewPlan(p.Name())
	all, err := p.given(&r)
	if err != nil {
		return nil, err
	}
	if p.Spread {
		all = append(all, p.placeRest(&r)...)
	}
	carries := make([]float64, len(all))
	total := make([]float64, len(r.Spec.Stages))
	given := make([]float64, len(r.Spec.Stages))
	asked := capacity.ServableDemands(p.believed(&r), r.Spec, r.Rates)
	for n, i := range all {
		if i.Worker < 0 || int(i.Worker) >= len(r.Spec.Workers) {
			return nil, fmt.Errorf("placement %d: worker %d does not exist", n, i.Worker)
		}
		if i.Stage < 0 || int(i.Stage) >= len(r.Spec.Stages) || len(i.Variants) == 0 {
			return nil, fmt.Errorf("placement %d: stage %d does not exist, or no variant is named", n, i.Stage)
		}
		item, rate, err := p.instance(&r, i, asked)
		if err != nil {
			return nil, fmt.Errorf("placement %d: %w", n, err)
		}
		carries[n] = rate
		given[i.Stage] += i.Share
		out.Instances = append(out.Instances, item)
	}
	sharing := make(map[serving.WorkerID]int)
	for n := range out.Instances {
		if out.Instances[n].TimeShared {
			sharing[out.Instances[n].Worker]++
		}
	}
	for n := range out.Instances {
		if i := &out.Instances[n]; i.TimeShared {
			carries[n] /= float64(sharing[i.Worker]) // each is expected to need as much of the worker's time
		}
		total[out.Instances[n].Stage] += carries[n]
	}
	for n := range out.Instances {
		i := &out.Instances[n]
		switch {
		case given[i.Stage] > 0:
			i.Share /= given[i.Stage]
		case total[i.Stage] > 0:
			i.Share = carries[n] / total[i.Stage]
		}
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	p.forecast(out, r.Spec, total)
	return out, out.Validate(r.Spec)
}

// given returns the instances of the configuration.
func (p *Planner) given(r *plan.Request) ([]numbered, error) {
	if p.Proposed {
		return p.fill(r)
	}
	all := make([]numbered, 0, len(p.Instances))
	for n, i := range p.Instances {
		all = append(all, numbered{i, int32(n) + 1})
	}
	return all, nil
}

// believed is what is believed of latency: a placement runs before it is known how fast it is.
func (p *Planner) believed(r *plan.Request) profile.Profile {
	return profile.Fallback{Primary: r.Believed(p.Profile), Secondary: p.Profile}
}

// instance turns a placement into an instance of a plan. asked is by StageID. rate is the items/s that it carries with
// full batches.
func (p *Planner) instance(r *plan.Request, i numbered, asked []capacity.StageDemand) (out plan.Instance, rate float64,
	err error) {
	believed := p.believed(r)
	out = plan.Instance{
		Worker: i.Worker, Place: i.place, Stage: i.Stage, Cores: i.Cores, Part: i.Part, Share: i.Share,
	}
	device := out.DeviceType(r.Spec)
	// Where no planner sets budgets, each stage gets an equal part of the objective, or one by its run time.
	budget, fraction := p.batchTime(&r.Spec.Apps[r.Spec.Stages[i.Stage].App], asked[i.Stage].Budget)
	variants, err := activeFirst(r.Spec, i.Variants)
	if err != nil {
		return out, 0, err
	}
	slots := i.Slots
	if slots < 1 {
		slots = capacity.PayingSlots(profile.MeasuredPoints(p.Profile), believed, r.Spec, variants[0], device,
			time.Duration(fraction*float64(budget)))
	}
	out.Slots = slots
	out.TimeShared = i.Part == 0 && (i.Cores == 0 || i.Cores >= r.Spec.DeviceTypes[device].Cores)
	for at, v := range variants {
		limit := largestBatch(believed, r.Spec, v, device, slots, budget, fraction)
		if p.Proposed {
			limit = min(limit, fitting(r.Spec, v, device))
		}
		if i.Limit > 0 {
			limit = min(i.Limit, r.Spec.Variants[v].MaxBatch)
		}
		switch {
		case limit > 0:
			out.Variants = append(out.Variants, plan.Variant{Variant: v, Limit: limit})
		case at == 0: // a variant besides the active one that is too slow is not loaded
			return out, 0, fmt.Errorf("variant %q takes %v for one item on device type %q, the objective leaves %v: "+
				"choose a faster variant or raise the SLO", r.Spec.Variants[v].Name,
				believed.Latency(v, device, 1, slots), r.Spec.DeviceTypes[device].Name, budget)
		}
	}
	active := out.Variants[0]
	if r.Spec.BelowFloor(active.Variant) {
		return out, 0, nil // it is there for queries that are pinned to it
	}
	run := believed.Latency(active.Variant, device, active.Limit, slots)
	out.BatchTimeout = max(budget-run, 0) // INFless §3.2: the time-out is the objective less the execution time
	return out, float64(slots*active.Limit) / run.Seconds(), nil
}

// batchTime returns the time within which a batch of a stage must end, for a stage with so much of its app's objective,
// and the part of that time that a batch may take.
func (p *Planner) batchTime(app *serving.App, budget time.Duration) (within time.Duration, fraction float64) {
	if p.Pooled {
		return app.SLO.Latency - app.Slack, 1
	}
	return budget, cmp.Or(p.Fraction, defaultFraction)
}

// activeFirst returns the variants of an instance with those below their app's accuracy floor at the end: they answer
// only queries that are pinned to them.
func activeFirst(spec *serving.Spec, variants []serving.VariantID) ([]serving.VariantID, error) {
	var out, below []serving.VariantID
	for _, v := range variants {
		switch {
		case v < 0 || int(v) >= len(spec.Variants):
			return nil, fmt.Errorf("variant %d does not exist", v)
		case spec.BelowFloor(v):
			below = append(below, v)
		default:
			out = append(out, v)
		}
	}
	return append(out, below...), nil
}

// forecast fills in throughput and accuracy. The slowest stage of an app bounds its throughput. capacity is by StageID
// in items/s.
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

// Everywhere proposes every stage on every worker.
func Everywhere(believed profile.Profile, spec *serving.Spec) *Planner {
	s := &Planner{Profile: believed, Fraction: 1, Proposed: true}
	for w := range spec.Workers {
		for st := range spec.Stages {
			s.Instances = append(s.Instances, Instance{
				Worker: serving.WorkerID(w), Stage: serving.StageID(st), Variants: spec.Stages[st].Variants,
			})
		}
	}
	return s
}
