package systems

import (
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Symphony (arXiv 2308.07470): every model is on every machine, a central scheduler waits with batches as long as they
// may grow, and fills machines from the first on.
var symphonySystems = []System{
	{
		Name: "symphony",
		Doc: "keeps one queue for each stage, waits with a batch until one more query would make it late, and runs " +
			"it on the first free machine, so that the last ones stay idle",
		Source: "Symphony, arXiv 2308.07470", Planner: "replicated", Router: "deferred", Batcher: "asrouted",
		Scaler: "replan",
	},
}

func newReplicated(w PlannerInputs, _ Options) (plan.Planner, error) {
	return static.Replicated{Profile: w.Profile}, nil
}
