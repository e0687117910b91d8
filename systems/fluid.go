package systems

import (
	"github.com/sluice-serving/sluice/planner/fluid"
	"github.com/sluice-serving/sluice/policy/plan"
)

// fluidSystems plan by the fluid program, and choose the variant of each batch from what waits.
var fluidSystems = []System{
	{
		Name: "fluid-trial",
		Doc: "chooses machines and what they hold by a linear program, tries plans before it adopts them, and " +
			"follows demand",
		Source: "ours", Planner: "fluid", Router: "priced", Batcher: "asrouted", Scaler: "anticipate",
	},
}

// newFluid keeps a placement that somebody has written down as it is.
func newFluid(w PlannerInputs, o Options) (plan.Planner, error) {
	if !w.Proposed && len(w.Placement) > 0 {
		return newStatic(w, o)
	}
	out := &fluid.Planner{
		Profile: w.Profile, Options: fluid.Options{Budget: o.Renting.Budget, Trials: o.Renting.Trials, Pooled: w.Pooled},
	}
	if w.Trials != nil {
		out.Try = w.Trials.Try
	}
	return out, nil
}
