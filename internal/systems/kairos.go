package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/kairos"
	kairosrules "github.com/sluice-serving/sluice/papers/kairos/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
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
		Name: "kairos+",
		Doc: "is kairos that tries other pools while it serves, the highest bound first, as long as the objective is " +
			"missed and a share of the time is left for it",
		Source: "Kairos §5.2, Algorithm 1 (KAIROS+)", Planner: "kairos", Router: "matching", Batcher: "single",
		Scaler:  "trypools",
		Options: Options{Learn: true, Renting: Renting{Explore: 0.05}},
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

var kairosPlanners = plannerTable{
	{
		"kairos", "chooses which machines to rent under a budget, by upper bounds on what pools serve", "Kairos §5.2",
		newKairos,
	},
}

var kairosRouters = routerTable{
	{
		"matching", "keeps one queue and pairs queries with instances at the least machine time, weighted by its worth",
		"Kairos §5.1, §6",
		func(o Options) route.Router { return kairosrules.NewMatching(o.Routing.Cells) },
	},
	{
		"schedule", "keeps one queue and schedules queries ahead on all instances at the least machine time, " +
			"weighted by its worth; where not all can be in time, it leaves out those that take most",
		"ours",
		func(Options) route.Router { return kairosrules.NewSchedule() },
	},
	{
		"threshold", "keeps one queue and gives large queries to the base device type and small ones to the others",
		"DeepRecSys, ISCA 2020; Kairos §7 (DRS)",
		func(o Options) route.Router { return kairosrules.NewThreshold(o.Routing.Threshold) },
	},
}

var kairosScalers = scalerTable{
	{
		"mixshift", "plans again when the sizes of queries shift, when a worker is lost or back, and when a price or " +
			"a latency changes", "Kairos §8.4",
		func(o Options) scale.Scaler { return kairosrules.NewMixShift(o.Replan) },
	},
	{
		"trypools", "plans again as mixshift does, and for another pool of machines when the objective is missed",
		"Kairos §5.2, Algorithm 1",
		func(o Options) scale.Scaler { return kairosrules.NewTryPools(o.Replan, o.Renting.Explore) },
	},
}

func newKairos(w PlannerInputs, o Options) (plan.Planner, error) {
	r := &o.Renting
	out := &kairos.Planner{
		Profile: w.Profile,
		Options: kairos.Options{Budget: r.Budget, Late: r.Late, Trials: r.Trials, Explores: r.Explore > 0},
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
