package reproduce

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
)

// Runner collects the tasks of a paper's figures, runs each of them once for every seed, and then calls the reports
// that turn results into rows, charts and notes.
type Runner struct {
	Request
	tasks   []*task
	byKey   map[string]*task
	reports []func(*Outcome) error
}

// task is work that runs once for each of its seeds.
type task struct {
	results []any // by seed, Request.First first; valid when Runner.Run calls the reports
	key     string
	weight  int
	do      func(ctx context.Context, seed uint64) (any, error)
}

// NewRunner returns a runner without tasks. It raises Seeds and First of the request to at least 1.
func NewRunner(request Request) *Runner {
	request.Seeds, request.First = max(request.Seeds, 1), max(request.First, 1)
	return &Runner{Request: request, byKey: make(map[string]*task)}
}

// addTask adds a task, or returns the one of the same key.
func (r *Runner) addTask(key string, weight, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *task {
	if t := r.byKey[key]; t != nil {
		return t
	}
	t := &task{key: key, weight: weight, do: do, results: make([]any, seeds)}
	r.tasks = append(r.tasks, t)
	r.byKey[key] = t
	return t
}

// Report registers a function that adds rows, charts and notes to the outcome. Reports are called in the order of their
// registration, after all tasks have run.
func (r *Runner) Report(add func(*Outcome) error) { r.reports = append(r.reports, add) }

// AddNotes registers a report that adds notes.
func (r *Runner) AddNotes(notes ...string) {
	r.Report(func(o *Outcome) error {
		o.Notes = append(o.Notes, notes...)
		return nil
	})
}

// Run runs all tasks, at most Parallel at the same time, and then all reports. The outcome does not depend on the order
// in which tasks end. The first error of a task or a report ends the run.
func (r *Runner) Run(ctx context.Context) (*Outcome, error) {
	type step struct {
		t    *task
		seed int
	}
	var steps []step
	total := 0
	for _, t := range r.tasks {
		for s := range t.results {
			steps = append(steps, step{t, s})
			total += t.weight
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return b.t.weight - a.t.weight })
	var mu sync.Mutex
	ended := 0
	err := experiment.Sweep(ctx, len(steps), r.Parallel, nil, func(ctx context.Context, i int) error {
		s := steps[i]
		v, err := s.t.do(ctx, r.First+uint64(s.seed))
		if err != nil {
			return err
		}
		s.t.results[s.seed] = v
		if r.Progress != nil {
			mu.Lock()
			defer mu.Unlock()
			ended += s.t.weight
			r.Progress(float64(ended)/float64(max(total, 1)), s.t.key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	for _, f := range r.reports {
		if err := f(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}
