package simtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Planner is the static planner. It adds policies, value functions and bounds on the rates of instances, so that every
// rule finds the sections that it needs. They are valid and otherwise arbitrary. They depend on the request alone. An
// app whose demand is 0 gets no instance.
type Planner struct{ static.Planner }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return p.Planner.Provides() | plan.Tables | plan.Values | plan.Bands
}

// Plan implements plan.Planner.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	out, err := p.Planner.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	assignParts(out, r.Spec)
	bounds := rand.New(rand.NewPCG(5, 6))
	for k := range out.Instances {
		i := &out.Instances[k]
		d := i.DeviceType(r.Spec)
		most := i.Variants[0].Limit
		i.Up = float64(i.Slots*most) / max(p.Profile.Latency(i.Variants[0].Variant, d, most, i.Slots).Seconds(), 1e-3)
		i.Low = i.Up * bounds.Float64()
	}
	out.Instances = slices.DeleteFunc(out.Instances, func(i plan.Instance) bool {
		a := r.Spec.Stages[i.Stage].App
		return int(a) < len(r.Rates) && r.Rates[a] == 0
	})
	rng := rand.New(rand.NewPCG(5, 5))
	for s := range r.Spec.Stages {
		set := plan.Policies{Stage: serving.StageID(s), DeviceType: serving.None}
		for k := range 1 + rng.IntN(3) {
			x := plan.Policy{Rate: float64(10 * (k + 1))}
			slo := r.Spec.Apps[r.Spec.Stages[s].App].SLO.Latency
			for j := range 1 + rng.IntN(5) {
				x.Slacks = append(x.Slacks, time.Duration(j)*slo/5)
			}
			for n := range 1 + rng.IntN(6) {
				for range x.Slacks {
					v := r.Spec.Stages[s].Variants[rng.IntN(len(r.Spec.Stages[s].Variants))]
					x.Choices = append(x.Choices, plan.Choice{Variant: v, Queries: int32(1 + rng.IntN(n+1))})
				}
			}
			set.ByRate = append(set.ByRate, x)
		}
		out.Policies = append(out.Policies, set)
		prices := plan.ValueFunctions{Stage: serving.StageID(s), Workers: 1 + rng.IntN(8)}
		for k := range 1 + rng.IntN(3) {
			x := plan.ValueFunction{
				Rate: float64(10 * (k + 1)), Residual: 1 + time.Duration(rng.Int64N(int64(time.Second))),
				Gain: rng.Float64(), LatePenalty: 3 * rng.Float64(), PerQuery: 0.1 + rng.Float64(),
			}
			for range 2 + rng.IntN(20) {
				x.Value = append(x.Value, 3*rng.NormFloat64())
			}
			x.Zero = rng.IntN(len(x.Value))
			prices.ByRate = append(prices.ByRate, x)
		}
		out.Values = append(out.Values, prices)
	}
	return out, nil
}
