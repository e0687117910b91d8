package systems

import (
	"github.com/sluice-serving/sluice/papers/symphony"
	symphonyrules "github.com/sluice-serving/sluice/papers/symphony/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
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

var symphonyPlanners = plannerTable{
	{
		"replicated", "loads every stage on every worker, to run the most accurate variant that carries the demand, " +
			"on as many rented machines as that takes", "Symphony, arXiv 2308.07470", newReplicated,
	},
}

var symphonyRouters = routerTable{
	{
		"deferred", "keeps one queue for each stage, waits with a batch until one more query would make it late, and " +
			"gives it to the free machine of the lowest number", "Symphony, arXiv 2308.07470",
		func(Options) route.Router { return symphonyrules.NewDeferred() },
	},
}

func newReplicated(w PlannerInputs, _ Options) (plan.Planner, error) {
	return symphony.Planner{Profile: w.Profile}, nil
}
