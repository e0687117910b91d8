package static

import (
	"context"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Resident loads every variant of every stage on every worker, as far as memory holds them: SuperServe (NSDI 2025) has
// all of them at hand in one network with shared weights. A batch may take the whole budget of its stage, because the
// rule that forms it looks at the time left. The stages of a worker take turns.
type Resident struct{ Profile profile.Profile }

// Name implements plan.Planner.
func (Resident) Name() string { return "resident" }

// Provides implements plan.Planner.
func (Resident) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.Holds }

// Plan implements plan.Planner. It fails when no worker has room for any variant of a stage, or none is fast enough.
func (p Resident) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	s := everywhere(p.Profile, r.Spec)
	out, err := s.Plan(ctx, r)
	if out != nil {
		out.Planner = p.Name()
	}
	return out, err
}

// everywhere proposes every stage on every worker.
func everywhere(believed profile.Profile, spec *serving.Spec) *Planner {
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
