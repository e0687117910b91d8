package systems

import (
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
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

func newResident(w PlannerInputs, _ Options) (plan.Planner, error) {
	return static.Resident{Profile: w.Profile}, nil
}
