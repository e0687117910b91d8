package systems

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/loki"
	lokirules "github.com/sluice-serving/sluice/papers/loki/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
)

// Loki (HPDC 2024): pipelines on the fewest servers while the most accurate variants carry the demand, and with the
// highest accuracy on all of them beyond that.
var lokiSystems = []System{
	{
		Name: "loki",
		Doc: "plans pipelines on the fewest machines while the most accurate variants carry the demand, for the " +
			"highest accuracy on all machines beyond that, and fills the most accurate first",
		Source: "Loki, HPDC 2024", Planner: "loki", Router: "mostaccuratefirst", Batcher: "earlydrop", Scaler: "replan",
		Options: Options{Replan: lokiInterval},
	},
	{
		Name:   "loki-hardware",
		Doc:    "is loki with the most accurate variant of each stage only",
		Source: "Loki, HPDC 2024 (hardware scaling)", Planner: "loki", Router: "mostaccuratefirst",
		Batcher: "earlydrop", Scaler: "replan",
		Options: Options{Replan: lokiInterval, Planning: Planning{Select: "most-accurate"}},
	},
}

var lokiPlanners = plannerTable{
	{
		"loki", "chooses variants by paths through a pipeline: the fewest machines with the most accurate ones, or " +
			"the highest accuracy on all machines", "Loki, HPDC 2024", newLoki,
	},
}

var lokiRouters = routerTable{
	{
		"mostaccuratefirst", "fills the most accurate instances up to what they carry, then the next, and sends " +
			"late queries to faster ones with capacity left", "Loki, HPDC 2024",
		func(Options) route.Router { return lokirules.NewMostAccurateFirst() },
	},
}

// lokiInterval is ours: the authors' simulations plan every second, with a solver that is not timed.
const lokiInterval = 10 * time.Second

func newLoki(w PlannerInputs, o Options) (plan.Planner, error) {
	if w.Solver == nil {
		return nil, fmt.Errorf("planner loki: %w", ErrNoSolver)
	}
	if o.Planning.Select == "least-accurate" {
		return nil, errors.New("planner loki: option select is least-accurate: use any or most-accurate")
	}
	return &loki.Planner{Profile: w.Profile, Solver: w.Solver, Options: loki.Options{
		MostAccurate: o.Planning.Select == "most-accurate", Headroom: o.Planning.Headroom, Batches: w.Batches,
	}}, nil
}
