package simtest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/plan/static"
	"github.com/sluice-serving/sluice/serving"
)

// Planner is the static one, with policies for every queue besides, so that every rule finds what it needs. What they say is
// legal and otherwise arbitrary: drawn anew, and the same, for every plan.
type Planner struct{ static.Planner }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return p.Planner.Provides() | plan.Tables }

// Plan implements plan.Planner.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	out, err := p.Planner.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
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
	}
	return out, nil
}
