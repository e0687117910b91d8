package systems

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/proteus"
	proteusrules "github.com/sluice-serving/sluice/papers/proteus/rules"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Proteus (ASPLOS 2024): a mixed-integer program assigns a variant and a share of the queries to each worker (§4).
// Queries follow those shares. Batches wait as long as their first query allows (§5). It plans at an interval and in
// bursts of the demand (§3).
var proteusSystems = []System{
	{
		Name: "proteus",
		Doc: "plans variants, places and shares for the highest mean accuracy that carries the demand, and a batch " +
			"waits as long as its first query can be in time",
		Source: "Proteus §3-§5", Planner: "proteus", Router: "weighted", Batcher: "adaptive", Scaler: "replan",
		Options: Options{Replan: proteusInterval},
	},
	{
		Name:   "proteus-fair",
		Doc:    "is proteus with plans for the highest accuracy of the worst app",
		Source: "Proteus §7 (left open); ours", Planner: "proteus", Router: "weighted", Batcher: "adaptive",
		Scaler:  "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Goal: "fairness"}},
	},
	{
		Name:   "proteus-blend",
		Doc:    "is proteus with plans for half the mean accuracy and half that of the worst app",
		Source: "Proteus §7 (left open); ours", Planner: "proteus", Router: "weighted", Batcher: "adaptive",
		Scaler:  "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Goal: "blend"}},
	},
	{
		Name:   "proteus-headroom",
		Doc:    "is proteus with more head-room the more unevenly queries arrive",
		Source: "ours", Planner: "proteus", Router: "weighted", Batcher: "adaptive", Scaler: "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Bursts: true}},
	},
	{
		Name:   "proteus-without-placement",
		Doc:    "is proteus with workers that keep their app",
		Source: "Proteus §6.5 (w/o MP)", Planner: "proteus", Router: "weighted", Batcher: "adaptive", Scaler: "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Place: "fixed"}},
	},
	{
		Name:   "proteus-without-selection",
		Doc:    "is proteus with the most accurate variant of each app only",
		Source: "Proteus §6.5 (w/o MS)", Planner: "proteus", Router: "weighted", Batcher: "adaptive", Scaler: "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Select: "most-accurate"}},
	},
	{
		Name:   "proteus-without-adaptive-batching",
		Doc:    "is proteus planned for batches of one and run with them",
		Source: "Proteus §6.5 (w/o AB)", Planner: "proteus", Router: "weighted", Batcher: "single", Scaler: "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Single: true}},
	},
	{
		Name:   "proteus-without-query-assignment",
		Doc:    "is proteus with equal shares, whatever a worker carries",
		Source: "Proteus §6.5 (w/o QA)", Planner: "proteus", Router: "weighted", Batcher: "adaptive", Scaler: "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Equal: true}},
	},
	{
		Name:   "proteus-aimd",
		Doc:    "is proteus with the batches of clipper",
		Source: "Proteus §6.4", Planner: "proteus", Router: "weighted", Batcher: "aimd", Scaler: "replan",
		Options: Options{Replan: proteusInterval},
	},
	{
		Name:   "proteus-earlydrop",
		Doc:    "is proteus with the batches of nexus-batching",
		Source: "Proteus §6.4 (Nexus)", Planner: "proteus", Router: "weighted", Batcher: "earlydrop", Scaler: "replan",
		Options: Options{Replan: proteusInterval},
	},
}

var proteusPlanners = plannerTable{
	{
		"proteus", "chooses each worker's variant and share of the queries by a mixed-integer program", "Proteus §4",
		newProteus,
	},
}

var proteusBatchers = batcherTable{
	{
		"adaptive", "waits for one more query as long as the first one can still be in time", "Proteus §5",
		func(Options) batch.Rule { return proteusrules.Adaptive{} },
	},
	{
		"aimd", "runs at once, up to a size that grows by one after a batch in time and shrinks by a tenth after a " +
			"late one", "Clipper, NSDI 2017, §4.3.1",
		func(o Options) batch.Rule { return proteusrules.AIMD{Release: o.Release} },
	},
}

// proteusInterval is that of the authors' release; the paper says 30 s (§6.1.5), with a solver that needs four.
const proteusInterval = 10 * time.Second

// newProteus builds the planner with the options of a system or a configuration.
func newProteus(w PlannerInputs, o Options) (plan.Planner, error) {
	if w.Solver == nil {
		return nil, fmt.Errorf("planner proteus: %w", ErrNoSolver)
	}
	p := &o.Planning
	out := &proteus.Planner{Profile: w.Profile, Solver: w.Solver, Options: proteus.Options{
		Headroom: p.Headroom, Gap: p.Gap, Lambda: p.Lambda, Tolerance: p.Tolerance, Slack: p.Slack, Single: p.Single,
		Bursts: p.Bursts, Uniform: p.Equal, Batches: w.Batches, Share: true,
	}}
	var ok [3]bool
	out.Options.Select, ok[0] = selections[cmp.Or(p.Select, "any")]
	out.Options.Place, ok[1] = placements[cmp.Or(p.Place, "free")]
	out.Options.Goal, ok[2] = goals[cmp.Or(p.Goal, "accuracy")]
	for n, x := range []string{"select is " + p.Select, "place is " + p.Place, "goal is " + p.Goal} {
		if !ok[n] {
			return nil, fmt.Errorf("planner proteus: option %s, which does not exist", x)
		}
	}
	return out, nil
}

var (
	selections = map[string]proteus.Selection{
		"any": proteus.AnyVariant, "most-accurate": proteus.MostAccurate, "least-accurate": proteus.LeastAccurate,
	}
	placements = map[string]proteus.Placement{"free": proteus.Free, "fixed": proteus.Fixed}
	goals      = map[string]proteus.Goal{
		"accuracy": proteus.Accuracy, "fairness": proteus.Fairness, "blend": proteus.Blend,
		"throughput": proteus.Throughput,
	}
)
