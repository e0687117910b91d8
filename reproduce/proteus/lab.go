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

// lab gathers what the figures want to have run, each thing once, and then runs it all.
type lab struct {
	reproduce.Request
	spec   *serving.Spec
	traces []*trace
	worlds map[string]*experiment.World
	tasks  []*task
	byKey  map[string]*task
	// after are the figures' turns to say what came out, in their order.
	after []func(*reproduce.Outcome) error
}

// task is something to be done once per seed, or once.
type task struct {
	key   string
	heavy int // guess of the time it takes; the heaviest begin first
	seeds int
	do    func(ctx context.Context, seed uint64) (any, error)
	done  []any // by seed
}

func newLab(r reproduce.Request) (*lab, error) {
	l := &lab{Request: r, worlds: make(map[string]*experiment.World), byKey: make(map[string]*task)}
	l.Seeds = max(l.Seeds, 1)
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
func (l *lab) world(s setup) (*experiment.World, error) {
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
	return l.do(key, j.trace.total()*weight, l.Seeds, func(ctx context.Context, seed uint64) (any, error) { return j.run(ctx, seed) })
}

func (l *lab) do(key string, heavy, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *task {
	if t := l.byKey[key]; t != nil {
		return t
	}
	t := &task{key: key, heavy: heavy, seeds: seeds, do: do, done: make([]any, seeds)}
	l.tasks = append(l.tasks, t)
	l.byKey[key] = t
	return t
}

// run does all tasks and lets the figures speak.
func (l *lab) run(ctx context.Context) (*reproduce.Outcome, error) {
	type step struct {
		t    *task
		seed int
	}
	var steps []step
	total := 0
	for _, t := range l.tasks {
		for s := range t.seeds {
			steps = append(steps, step{t, s})
			total += t.heavy
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return b.t.heavy - a.t.heavy })
	var mu sync.Mutex
	ended := 0
	err := experiment.Sweep(ctx, len(steps), l.Parallel, nil, func(ctx context.Context, i int) error {
		s := steps[i]
		v, err := s.t.do(ctx, uint64(s.seed+1))
		if err != nil {
			return err
		}
		s.t.done[s.seed] = v
		if l.Progress != nil {
			mu.Lock()
			defer mu.Unlock()
			ended += s.t.heavy
			l.Progress(float64(ended)/float64(max(total, 1)), s.t.key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &reproduce.Outcome{}
	for _, f := range l.after {
		if err := f(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// results are a job's, by seed.
func (t *task) results() []*result {
	out := make([]*result, len(t.done))
	for i, d := range t.done {
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
