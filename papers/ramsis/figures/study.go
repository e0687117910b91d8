package ramsis

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name: "ramsis", Title: "Model Selection for Latency-Critical Inference Serving (RAMSIS, EuroSys 2024)",
	Solver: true, New: newRunner,
	Figures: []reproduce.Declaration[*runner]{
		{Name: "3", Declare: modelsOf("image"), Doc: "image models: accuracy over latency"},
		{Name: "9", Declare: modelsOf("text"), Doc: "text models: accuracy over latency"},
		{Name: "N", Declare: figureN, Doc: "the naive process: its states, and how long one sweep over them takes"},
		{Name: "V", Declare: figureV, Doc: "variable batching: the share of decisions that take all that wait"},
		{Name: "5", Declare: figure5, Doc: "the production trace by workers: image and text, three objectives each"},
		{Name: "6", Declare: figure6, Doc: "constant load: image on 60 workers and text on 20, three objectives each"},
		{Name: "7", Declare: figure7, Doc: "what policies promise against what is simulated, 40, 60 and 80 workers"},
		{Name: "8", Declare: sideBySide("9 and 60 models", 100, contenders8), Doc: "9 and 60 models, 100 workers"},
		{Name: "10", Declare: sideBySide("discretisations of slack", 60, contenders10),
			Doc: "how finely slack is told apart"},
		{Name: "11", Declare: sideBySide("maximal and variable batching", 60, contenders11),
			Doc: "batches of everything that waits, and batches that leave queries behind"},
		{Name: "12", Declare: sideBySide("9 and 3 models", 60, contenders12), Doc: "9 and 3 models"},
		{Name: "T2", Declare: figureT2, OnRequest: true,
			Doc: "Table 2: how long a policy takes to be made; only when asked for by name, since times are " +
				"the machine's"},
		{Name: "T3", Declare: figureT3, Doc: "Table 3: violations in Figure 5"},
		{Name: "T4", Declare: figureT4, Doc: "Table 4: violations in Figure 6"},
		{Name: "A4", Declare: figureA4, Doc: "the artifact's own evaluation: image, SLO 150 ms, 60 to 80 workers"},
		{Name: "H", Declare: figureH, Doc: "appendix H: INFaaS with every accuracy target"},
		{Name: "W", Declare: figureW,
			Doc: "ours: workers that others need for what RAMSIS does with 60, by constant load"},
		{Name: "G", Declare: figureG, OnRequest: true,
			Doc: "ours: arrivals that are not Poisson's, with policies that react to what is seen; some minutes, " +
				"only when asked for"},
		{Name: "7L", Declare: figure7Live, OnRequest: true,
			Doc: "Figure 7's implementation: the data plane with sleeping workers; five minutes, only when asked for"},
	},
	Notes: []string{
		"Accuracies are means over the queries in time, as in the paper. Violations count every query, those still " +
			"waiting when the load ends too: they are served to the end, where the authors' simulator leaves them out.",
		"The fluid bound is the accuracy of a steady flow that is always batched at will; nothing that keeps all " +
			"queries in time is above it. A system that lets queries be late may be, since those do not count in the " +
			"mean.",
	},
}

// Paper returns the experiments of RAMSIS.
func Paper() reproduce.Paper { return study.Paper() }

// runner holds what the figures share. Tests lower rates, workers and spans.
type runner struct {
	*reproduce.Runner
	rates        []float64     // constant loads, in queries/s
	workers      []float64     // numbers of workers on the trace
	constantSpan time.Duration // length of constant loads
	systems      []systems.System
	patternRates []float64     // constant loads of figure G, in queries/s
	shapes       []float64     // of its gamma gaps
	patternSpan  time.Duration // length of each
	environments reproduce.Memo[setup, *experiment.Environment]
	trace        *load
}

// The constant loads of Figure 6, in queries/s, and the numbers of workers of Figure 5.
var (
	constantRates = []float64{400, 800, 1200, 1600, 2000, 2400, 2800, 3200, 3600, 4000}
	workerCounts  = []float64{20, 30, 40, 50, 60, 70, 80, 90, 100}
)

func newRunner(r reproduce.Request) (*runner, error) {
	trace, err := newTraceLoad(traceSpan)
	return &runner{
		Runner: reproduce.NewRunner(r), systems: comparedSystems(), trace: trace, rates: constantRates,
		workers: workerCounts, constantSpan: constantSpan, patternRates: []float64{1200, 2000},
		shapes: []float64{4, 1, 0.25, 0.0625}, patternSpan: patternSpan,
	}, err
}

// runs are the results of one system in one setup.
type runs = reproduce.Runs[*result]

func accuracy(r *result) float64   { return r.accuracy }
func violations(r *result) float64 { return r.violations }

// quantities are shown of every system.
var quantities = []reproduce.Quantity[*result]{
	{Name: accuracyRow, Unit: "%", Of: accuracy}, {Name: violationRow, Unit: "%", Of: violations},
}

const (
	accuracyRow  = "accuracy per satisfied query"
	violationRow = "SLO violations"
	// satisfiableViolations is the rate of violations, in per cent, up to which the paper shows a point (§7.1).
	satisfiableViolations = 5
)

// simulation adds a task that runs a system in a setup under a load, with every seed.
func (run *runner) simulation(at setup, s systems.System, on *load) runs {
	prepared := sync.OnceValues(func() (*job, error) { return run.job(at, s, on) })
	key := fmt.Sprintf("%s, %s, %v, grid %v", s.Name, on.name, at, on.grid)
	return reproduce.Add(run.Runner, key, int(on.expected()), run.Seeds,
		func(ctx context.Context, seed uint64) (*result, error) {
			j, err := prepared()
			if err != nil {
				return nil, err
			}
			return j.simulate(ctx, seed)
		})
}

func (run *runner) job(at setup, s systems.System, on *load) (*job, error) {
	w, err := run.environments.Get(at, func() (*experiment.Environment, error) {
		w, err := newEnvironment(run.Solver, at)
		if err == nil {
			w.Policies = run.Policies
		}
		return w, err
	})
	if err != nil {
		return nil, err
	}
	return newJob(w, s, on), nil
}

// without is accuracies with none where the violations are at least most per cent.
func without(accuracies, late reproduce.Values, most float64) reproduce.Values {
	return accuracies.Map(func(a float64) float64 {
		if late.Mean() >= most {
			return math.NaN()
		}
		return a
	})
}

// constantLoad returns a load of the runner's length.
func (run *runner) constantLoad(rate float64) *load {
	return newConstantLoad(fmt.Sprintf("%v queries/s", rate), rate, run.constantSpan)
}

const ms = time.Millisecond
