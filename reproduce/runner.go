package reproduce

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/sim/experiment"
)

// Runner gathers what the figures of a paper want to have run, each thing once, and then runs it all.
type Runner struct {
	Request
	tasks   []*Task
	byKey   map[string]*Task
	reports []func(*Outcome) error
}

// Task is something to be done once per seed, or once.
type Task struct {
	Results []any // by seed, when all is run
	key     string
	weight  int
	do      func(ctx context.Context, seed uint64) (any, error)
}

// NewRunner begins with nothing to do.
func NewRunner(request Request) *Runner {
	request.Seeds = max(request.Seeds, 1)
	return &Runner{Request: request, byKey: make(map[string]*Task)}
}

// AddTask wants something done with the seeds 1 to seeds; tasks of one key are one. heavy is a guess of the time it takes:
// the heaviest begin first, and progress is counted in it.
func (r *Runner) AddTask(key string, weight, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *Task {
	if t := r.byKey[key]; t != nil {
		return t
	}
	t := &Task{key: key, weight: weight, do: do, Results: make([]any, seeds)}
	r.tasks = append(r.tasks, t)
	r.byKey[key] = t
	return t
}

// Report gives a figure its turn to say what came out, when everything is done, in the order of the calls.
func (r *Runner) Report(add func(*Outcome) error) { r.reports = append(r.reports, add) }

// AddNotes adds what is to be known of all that came out.
func (r *Runner) AddNotes(notes ...string) {
	r.Report(func(o *Outcome) error {
		o.Notes = append(o.Notes, notes...)
		return nil
	})
}

// Run does all tasks and lets the figures speak.
func (r *Runner) Run(ctx context.Context) (*Outcome, error) {
	type step struct {
		t    *Task
		seed int
	}
	var steps []step
	total := 0
	for _, t := range r.tasks {
		for s := range t.Results {
			steps = append(steps, step{t, s})
			total += t.weight
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return b.t.weight - a.t.weight })
	var mu sync.Mutex
	ended := 0
	err := experiment.Sweep(ctx, len(steps), r.Parallel, nil, func(ctx context.Context, i int) error {
		s := steps[i]
		v, err := s.t.do(ctx, uint64(s.seed+1))
		if err != nil {
			return err
		}
		s.t.Results[s.seed] = v
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
