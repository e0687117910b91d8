package proteus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
)

// lab is what the figures share.
type lab struct {
	*reproduce.Runner
	spec   *serving.Spec
	traces []*trace
	worlds map[string]*experiment.Environment
}

// task is something that runs once per seed, or once.
type task struct{ *reproduce.Task }

func newLab(r reproduce.Request) (*lab, error) {
	l := &lab{Runner: reproduce.NewRunner(r), worlds: make(map[string]*experiment.Environment)}
	var err error
	if l.spec, _, err = table(1); err != nil {
		return nil, err
	}
	if l.traces, err = traces(l.spec, r.Arrivals); err != nil {
		return nil, err
	}
	l.Solver = &counting{Solver: r.Solver}
	return l, nil
}

func (l *lab) trace(name string) *trace {
	return l.traces[slices.IndexFunc(l.traces, func(t *trace) bool { return t.name == name })]
}

// world returns the world of a setup, which all its tasks share: nothing in it changes.
func (l *lab) world(s setup) (*experiment.Environment, error) {
	key := fmt.Sprint(s)
	if w := l.worlds[key]; w != nil {
		return w, nil
	}
	w, err := world(l.Solver, s)
	if err == nil {
		l.worlds[key] = w
	}
	return w, err
}

// want has a job run with every seed; jobs of one key are one.
func (l *lab) want(key string, j *job) *task {
	weight := 1
	if !slices.Contains([]string{"fixed", "arrivals"}, j.System.Scaler) {
		weight = 10
	}
	return l.do(key, j.trace.total()*weight, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return j.run(ctx, seed)
	})
}

func (l *lab) do(key string, heavy, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *task {
	return &task{l.AddTask(key, heavy, seeds, do)}
}

// results are a job's, by seed.
func (t *task) results() []*result {
	out := make([]*result, len(t.Results))
	for i, d := range t.Results {
		out[i] = d.(*result)
	}
	return out
}

// each takes a number from every result.
func (t *task) each(f func(*result) float64) []float64 {
	var out []float64
	for _, r := range t.results() {
		out = append(out, f(r))
	}
	return out
}

// counting counts the nodes of the searches: the only measure of a solver's work that is the same on every machine.
type counting struct {
	milp.Solver
	mu    sync.Mutex
	nodes int64
	size  [2]int // columns and rows of the last program
	took  time.Duration
}

func (c *counting) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
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
