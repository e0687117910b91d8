package proteus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// runner collects what the figures need, and keeps what they share. Tests shorten batchingSpan and sizes.
type runner struct {
	*reproduce.Runner
	spec         *serving.Spec
	traces       []*trace
	environments map[string]*experiment.Environment
	batchingSpan time.Duration // simulated length of the runs of Figure 6
	sizes        []problemSize // of Figure 10
}

// task is a task whose results are of type *result where its methods are used.
type task struct{ *reproduce.Task }

func newRunner(r reproduce.Request) (*runner, error) {
	run := &runner{Runner: reproduce.NewRunner(r), environments: make(map[string]*experiment.Environment),
		batchingSpan: 60 * time.Second, sizes: sizes}
	var err error
	if run.spec, _, err = readProfile(1); err != nil {
		return nil, err
	}
	if run.traces, err = readTraces(run.spec, r.Arrivals); err != nil {
		return nil, err
	}
	run.Solver = &countingSolver{Solver: r.Solver}
	return run, nil
}

func (run *runner) trace(name string) *trace {
	return run.traces[slices.IndexFunc(run.traces, func(t *trace) bool { return t.name == name })]
}

// environment returns the environment of a setup, built once. All tasks share it, as running does not change it.
func (run *runner) environment(s setup) (*experiment.Environment, error) {
	key := fmt.Sprint(s)
	if w := run.environments[key]; w != nil {
		return w, nil
	}
	w, err := newEnvironment(run.Solver, s)
	if err == nil {
		run.environments[key] = w
	}
	return w, err
}

// simulationTask adds a task that runs a job with every seed.
func (run *runner) simulationTask(key string, j *job) *task {
	weight := 1
	if !slices.Contains([]string{"fixed", "arrivals"}, j.System.Scaler) {
		weight = 10
	}
	return run.addTask(key, j.trace.total()*weight, run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return j.simulate(ctx, seed)
	})
}

func (run *runner) addTask(key string, heavy, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *task {
	return &task{run.AddTask(key, heavy, seeds, do)}
}

// results returns the results by seed.
func (t *task) results() []*result {
	out := make([]*result, len(t.Results))
	for i, d := range t.Results {
		out[i] = d.(*result)
	}
	return out
}

// each returns one number for each result, by seed.
func (t *task) each(f func(*result) float64) []float64 {
	var out []float64
	for _, r := range t.results() {
		out = append(out, f(r))
	}
	return out
}

// countingSolver counts the nodes of branch and bound: the only measure of a solver's work that is the same on every
// machine.
type countingSolver struct {
	milp.Solver
	mu    sync.Mutex
	nodes int64
	size  [2]int // columns and rows of the last program
	took  time.Duration
}

func (c *countingSolver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	begun := time.Now()
	s, err := c.Solver.Solve(ctx, p, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took += time.Since(begun)
	c.size = [2]int{len(p.Columns), len(p.Rows)}
	if s != nil {
		c.nodes += s.Nodes
	}
	return s, err
}
