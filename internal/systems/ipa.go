package systems

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/ipa"
	"github.com/sluice-serving/sluice/policy/plan"
)

// IPA (JSys 2024): graphs of models with one variant for each stage, planned every ten seconds. Queries wait in a
// queue of their stage; a batch waits for its size as long as the plan expects it to fill. IPA forecasts the demand
// with a neural network; here plans have the margin below, and are made anew when the demand exceeds them.
var ipaSystems = []System{
	{
		Name: "ipa",
		Doc: "plans one variant, one batch size and a number of workers for each stage of a graph, by weights for " +
			"accuracy and cost",
		Source: "IPA, JSys 2024", Planner: "ipa", Router: "fcfs", Batcher: "filltimeout", Scaler: "replan",
		Options: Options{Replan: ipaInterval, Planning: Planning{Headroom: ipaMargin}},
	},
}

var ipaPlanners = plannerTable{
	{
		"ipa", "chooses one variant, one batch size and a number of workers for each stage by an integer program",
		"IPA, JSys 2024", newIPA,
	},
}

// ipaInterval is that of the authors' configurations (adaptation_interval).
const ipaInterval = 10 * time.Second

// ipaMargin is the factor on the demand (predictor_margin in several of the authors' configurations).
const ipaMargin = 1.2

func newIPA(w PlannerInputs, o Options) (plan.Planner, error) {
	if w.Solver == nil {
		return nil, fmt.Errorf("planner ipa: %w", ErrNoSolver)
	}
	l := &o.Pipelines
	return &ipa.Planner{Profile: w.Profile, Solver: w.Solver, Options: ipa.Options{
		Accuracy: l.AccuracyWeight, Cost: l.CostWeight, Batch: l.BatchWeight, Headroom: o.Planning.Headroom,
		Batches: w.Batches,
	}}, nil
}
