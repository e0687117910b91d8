package systems

import (
	"github.com/sluice-serving/sluice/papers/superserve"
	superserverules "github.com/sluice-serving/sluice/papers/superserve/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
)

// SuperServe (NSDI 2025) with SlackFit. There the variants are parts of one network that share weights; here they are
// variants that are loaded beside each other.
var superServeSystems = []System{
	{
		Name: "superserve",
		Doc: "has all variants loaded everywhere, keeps one queue, and lets the time left of its first query choose " +
			"the variant and the size of each batch",
		Source: "SuperServe, NSDI 2025 (SlackFit)", Planner: "resident", Router: "slackfit", Batcher: "asrouted",
		Scaler: fixed,
	},
}

var superServePlanners = plannerTable{
	{
		"resident", "loads every variant that fits on every worker, for batches as long as the objective allows",
		"SuperServe, NSDI 2025", newResident,
	},
}

var superServeRouters = routerTable{
	{
		"slackfit", "keeps one queue, from which a free instance takes the slowest of the kept batches that is in " +
			"time for its first query", "SuperServe, NSDI 2025",
		func(Options) route.Router { return superserverules.NewSlackFit() },
	},
}

func newResident(w PlannerInputs, _ Options) (plan.Planner, error) {
	return superserve.Planner{Profile: w.Profile}, nil
}
