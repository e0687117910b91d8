package systems

import (
	"github.com/sluice-serving/sluice/papers/tidal"
	tidalrules "github.com/sluice-serving/sluice/papers/tidal/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
)

// Ours, for the setting of RAMSIS with two changes: an objective counted by query rather than by decision, and one
// queue for all workers.
var tidalSystems = []System{
	{
		Name: "tidal",
		Doc: "keeps one queue for all workers, and weighs each batch's accuracy against the state in which it leaves " +
			"the pool",
		Source: "ours", Planner: "tidal", Router: "tidal", Batcher: "asrouted", Scaler: fixed,
	},
}

var tidalPlanners = plannerTable{
	{
		"tidal", "loads every variant on every worker and computes the worth of every state of the pool", "ours",
		newTidal,
	},
}

var tidalRouters = routerTable{
	{
		"tidal", "keeps one queue and weighs each batch's accuracy against the state in which it leaves the pool",
		"ours",
		func(Options) route.Router { return tidalrules.NewTidal() },
	},
}

func newTidal(w PlannerInputs, o Options) (plan.Planner, error) {
	return &tidal.Planner{Profile: w.Profile, Options: tidal.Options{SingleRate: o.Policies.Known}}, nil
}
