// Package superserve plans for SuperServe (NSDI 2025); its router is in rules.
package superserve

import (
	"context"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner loads every variant of every stage on every worker, as far as memory holds them: SuperServe (NSDI 2025) has
// all of them at hand in one network with shared weights. A batch may take the whole budget of its stage, because the
// rule that forms it looks at the time left. The stages of a worker take turns.
type Planner struct{ Profile profile.Profile }

// Name implements plan.Planner.
func (Planner) Name() string { return "resident" }

// Provides implements plan.Planner.
func (Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.BatchTimeouts }

// Plan implements plan.Planner. It fails when no worker has room for any variant of a stage, or none is fast enough.
func (p Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	s := static.Everywhere(p.Profile, r.Spec)
	out, err := s.Plan(ctx, r)
	if out != nil {
		out.Planner = p.Name()
	}
	return out, err
}
