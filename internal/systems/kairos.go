package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Kairos rents machines by upper bounds of pools, without trials (§5.2), and plans again when the sizes of queries
// shift. Queries wait centrally and are matched with machines (§5.1). Latency is learned while serving.
var kairosSystems = []System{
	{
		Name:   "kairos",
		Doc:    "rents the best pool of mixed machines under a budget, and matches queries with them",
		Source: "Kairos §5, §6", Planner: "kairos", Router: "matching", Batcher: "single", Scaler: "mixshift",
		Options: Options{Learn: true},
	},
	{
		Name:   "kairos-fluid",
		Doc:    "is kairos with pools chosen by a linear program over the sizes of queries, less what queues take",
		Source: "Kairos §5.1; the program is ours", Planner: "kairos", Router: "matching", Batcher: "single",
		Scaler:  "mixshift",
		Options: Options{Learn: true, Renting: Renting{Bound: "queue"}},
	},
	{
		Name: "kairos-schedule",
		Doc: "is kairos-fluid with queries scheduled ahead on all machines, whose time has the linear program's " +
			"prices",
		Source: "ours", Planner: "kairos", Router: "schedule", Batcher: "single", Scaler: "mixshift",
		Options: Options{Learn: true, Renting: Renting{Bound: "queue"}},
	},
	// A baseline of Kairos that differs in the distribution of queries (§7). The others are clkwrk and fcfs (Ribbon).
	{
		Name:    "drs",
		Doc:     "sends queries above a size to the base type and the others to cheaper types",
		Source:  "DeepRecSys, ISCA 2020; Kairos §7 (DRS)",
		Planner: asWritten, Router: "threshold", Batcher: "single", Scaler: fixed,
	},
}

func newKairos(w PlannerInputs, o Options) (plan.Planner, error) {
	r := &o.Renting
	out := &kairos.Planner{
		Profile: w.Profile,
		Options: kairos.Options{Budget: r.Budget, Late: r.Late, Trials: r.Trials},
	}
	if w.Trials != nil {
		out.Trial = w.Trials.Best
	}
	switch r.Bound {
	case "", "paper":
	case "fluid":
		out.Options.Fluid = true
	case "queue":
		out.Options.Queueing = true
	default:
		return nil, fmt.Errorf("planner kairos: option bound is %s, which does not exist: use paper, fluid or queue",
			r.Bound)
	}
	return out, nil
}
