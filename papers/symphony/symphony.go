// Package symphony plans for Symphony (arXiv 2308.07470); its batcher is in rules.
package symphony

import (
	"context"
	"math"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner places one variant of each stage on every worker: the most accurate one that carries the demand. It uses all
// owned machines. Of rented ones it uses those of the lowest numbers, as many as the demand takes: routers that fill
// machines from the first on leave the last idle, and these are given back.
type Planner struct{ Profile profile.Profile }

// most is the part of the machines' time that the demand may take before another one is rented.
const most = 0.8

// Name implements plan.Planner.
func (Planner) Name() string { return "replicated" }

// Provides implements plan.Planner.
func (Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.BatchTimeouts }

// Plan implements plan.Planner. It fails when no worker has room for any variant of a stage, or none is fast enough.
func (p Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	s := static.Everywhere(p.Profile, r.Spec)
	s.ByDemand = true
	out, err := s.Plan(ctx, r)
	if out == nil || err != nil {
		return nil, err
	}
	out.Planner = p.Name()
	p.giveBack(&r, out)
	return out, out.Validate(r.Spec)
}

// giveBack removes the instances on rented machines that the demand does not take, beginning with the last machine.
func (p Planner) giveBack(r *plan.Request, out *plan.Plan) {
	items := capacity.ItemRates(r, capacity.Rates(r, 1))
	rates := make([]float64, len(r.Spec.Stages)) // items/s of the machines that are kept, each stage alone
	believed := r.Believed(p.Profile)
	rate := func(i *plan.Instance) float64 {
		v := i.Variants[0]
		run := believed.Latency(v.Variant, i.DeviceType(r.Spec), v.Limit, i.Slots)
		return float64(v.Limit*i.Slots) / run.Seconds()
	}
	taken := func() (part float64) { // of the time of the machines that are kept
		for s := range items {
			if !r.Spec.Apps[r.Spec.Stages[s].App].Closed {
				if rates[s] == 0 {
					return math.Inf(1)
				}
				part += items[s] / rates[s]
			}
		}
		return part
	}
	keep := make([]bool, len(r.Spec.Workers))
	for _, rented := range []bool{false, true} {
		for w := range r.Spec.Workers {
			if r.Spec.DeviceTypes[r.Spec.Workers[w].DeviceType].Tenure == serving.Rented != rented ||
				rented && taken() <= most {
				continue
			}
			keep[w] = true
			for n := range out.Instances {
				if i := &out.Instances[n]; int(i.Worker) == w {
					rates[i.Stage] += rate(i)
				}
			}
		}
	}
	var kept []plan.Instance
	shares := make([]float64, len(r.Spec.Stages))
	for _, i := range out.Instances {
		if keep[i.Worker] {
			kept = append(kept, i)
			shares[i.Stage] += i.Share
		}
	}
	for n := range kept {
		if sum := shares[kept[n].Stage]; sum > 0 {
			kept[n].Share /= sum
		}
	}
	out.Instances = kept
	out.Forecast.CostPerHour = r.CostPerHour(kept)
}
