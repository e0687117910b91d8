package systems

import (
	"github.com/sluice-serving/sluice/planner/fluid"
	"github.com/sluice-serving/sluice/policy/plan"
)

// newFluid keeps a placement that somebody has written down as it is.
func newFluid(w PlannerInputs, o Options) (plan.Planner, error) {
	if !w.Proposed && len(w.Placement) > 0 {
		return newStatic(w, o)
	}
	out := &fluid.Planner{
		Profile: w.Profile,
		Options: fluid.Options{Budget: o.Renting.Budget, Trials: o.Renting.Trials, Pooled: w.Pooled},
	}
	if w.Trials != nil {
		out.Try = w.Trials.Try
	}
	return out, nil
}
