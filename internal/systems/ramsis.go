package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/ramsis"
	ramsisrules "github.com/sluice-serving/sluice/papers/ramsis/rules"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
)

// RAMSIS (EuroSys 2024): every worker has all variants. Policies made in advance choose among them by the state of the
// worker's queue; the policy for the present load is in force.
var ramsisSystems = []System{
	{
		Name:   "ramsis",
		Doc:    "chooses variant and batch by policies made for each arrival rate; queries go to workers in turn",
		Source: "RAMSIS §3-§5", Planner: "ramsis", Router: "roundrobin", Batcher: "policytable", Scaler: "uncovered",
	},
	{
		Name:   "ramsis-shortestqueue",
		Doc:    "is ramsis with each query sent to the shortest queue",
		Source: "RAMSIS App. I", Planner: "ramsis", Router: "shortestqueue", Batcher: "policytable",
		Scaler:  "uncovered",
		Options: Options{Policies: Policies{Balance: route.NewShortestQueue().Name()}},
	},
	{
		Name:   "ramsis-variable",
		Doc:    "is ramsis with batches that may leave queries behind",
		Source: "RAMSIS §4.3.2", Planner: "ramsis", Router: "roundrobin", Batcher: "policytable", Scaler: "uncovered",
		Options: Options{Policies: Policies{Variable: true}},
	},
}

var ramsisPlanners = plannerTable{
	{
		"ramsis", "loads every variant on every worker and makes policies for choosing among them", "RAMSIS §4",
		newRamsis,
	},
}

var ramsisRouters = routerTable{
	{
		"eager", "keeps one queue, from which an idle instance takes the batch that the policy in force says",
		"RAMSIS §7",
		func(Options) route.Router { return ramsisrules.Eager{} },
	},
}

var ramsisBatchers = batcherTable{
	{
		"policytable", "runs what a policy made in advance says for the queue's length and the time left",
		"RAMSIS §3.2.2",
		func(Options) batch.Rule { return ramsisrules.PolicyTable{} },
	},
}

var ramsisScalers = scalerTable{
	{
		"uncovered", "plans again when the load exceeds the rates that the plan has policies for, and when a worker " +
			"is lost or back", "RAMSIS §3.2.2",
		func(Options) scale.Scaler { return ramsisrules.Uncovered{} },
	},
}

func newRamsis(w PlannerInputs, o Options) (plan.Planner, error) {
	p := &o.Policies
	out := &ramsis.Planner{Profile: w.Profile, Store: w.Policies, OnMade: w.Made, Options: ramsis.Options{
		Levels: p.Levels, MaxQueue: p.Longest, Variable: p.Variable, Shape: p.Shape, Step: p.Step, Rates: p.Rates,
		Reacts: p.Reacts, SingleRate: p.Known, Unpromised: w.Unpromised,
	}}
	switch p.Balance {
	case "", "roundrobin":
	case "shortestqueue":
		out.Options.Balance = ramsis.ShortestQueue
	default:
		return nil, fmt.Errorf("balance is %q: the planner knows roundrobin and shortestqueue", p.Balance)
	}
	return out, nil
}
