package systems

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// PlannerInputs is what planners know besides what they are asked.
type PlannerInputs struct {
	Profile   profile.Profile
	Solver    milp.Solver       // nil refuses the planners that solve a program
	Placement []static.Instance // as a person wrote it down; for the planner static
	Proposed  bool              // nobody wrote Placement down: of it is loaded what can run and fits
	ByDemand  bool              // instances of it run what carries the demand: see static.Planner
	Unbatched bool              // queries run one at a time: see static.Planner
	Pooled    bool              // one rule decides for all stages and machines: see static.Planner
	Seconds   bool              // queries may have second answers: see fluid.Options
	Spread    bool              // stages that Placement leaves out are placed all the same; for the planner static
	Batches   []int             // the batch sizes that may be planned; nil for any
	Policies  ramsis.Store      // keeps policies between runs; nil keeps none
	// Trials tries by simulation what planners consider; nil leaves their choice to estimates.
	Trials Trials
	// Unpromised makes policies for a known load without the promises that nobody will look at.
	Unpromised bool
	// Made is told after every policy that was made, for which rate in queries/s; nil for nobody.
	Made func(rate float64)
}

// Trials answers by simulation what planners ask who know no simulator. Equal questions must have equal answers.
type Trials interface {
	// Best is a kairos.Trial: which pool of machines carries most.
	Best(ctx context.Context, c kairos.Contest) (best int, err error)
	// Try is a plan.Try: what a plan leads to.
	Try(ctx context.Context, r *plan.Request, p *plan.Plan) (plan.Tried, error)
}

// ErrNoSolver tells that a planner needs PlannerInputs.Solver.
var ErrNoSolver = errors.New("the planner solves a program and has no solver")
