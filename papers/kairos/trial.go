package kairos

import (
	"context"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Trial finds by simulation which of the pools of a contest serves most queries/s in time, and returns its index. It is
// a port, because planners know no simulator: systems.PlannerInputs carries it. Equal contests must have equal answers.
type Trial func(ctx context.Context, c Contest) (best int, err error)

// Contest is pools for one variant that are to be tried.
type Contest struct {
	Spec    *serving.Spec
	Market  *Market // the sizes of queries, and what is believed of their run times
	Variant serving.VariantID
	Late    float64     // share of the queries that may miss the objective, above 0
	Pools   []Estimated // two or more, the highest estimate first
	Known   *plan.Known // what was measured of Spec; see plan.Request
}

// DefaultTrials is how many pools are tried where Options.Trials is 0. With the paper's five models and budgets of 1 to
// 10 $/h the best of them is within 2 % of the best pool (docs/papers/kairos.md).
const DefaultTrials = 6
