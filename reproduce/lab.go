package reproduce

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/sim/experiment"
)

// Lab gathers what the figures of a paper want to have run, each thing once, and then runs it all.
type Lab struct {
	Request
	tasks []*Task
	byKey map[string]*Task
	after []func(*Outcome) error
}

// Task is something to be done once per seed, or once.
type Task struct {
	Done  []any // by seed, when all is run
	key   string
	heavy int
	do    func(ctx context.Context, seed uint64) (any, error)
}

// NewLab begins with nothing to do.
func NewLab(r Request) *Lab {
	r.Seeds = max(r.Seeds, 1)
	return &Lab{Request: r, byKey: make(map[string]*Task)}
}

// Do wants something done with the seeds 1 to seeds; tasks of one key are one. heavy is a guess of the time it takes:
// the heaviest begin first, and progress is counted in it.
func (l *Lab) Do(key string, heavy, seeds int, do func(ctx context.Context, seed uint64) (any, error)) *Task {
	if t := l.byKey[key]; t != nil {
		return t
	}
	t := &Task{key: key, heavy: heavy, do: do, Done: make([]any, seeds)}
	l.tasks = append(l.tasks, t)
	l.byKey[key] = t
	return t
}

// After gives a figure its turn to say what came out, when everything is done, in the order of the calls.
func (l *Lab) After(say func(*Outcome) error) { l.after = append(l.after, say) }

// Note adds what is to be known of all that came out.
func (l *Lab) Note(notes ...string) {
	l.After(func(o *Outcome) error {
		o.Notes = append(o.Notes, notes...)
		return nil
	})
}

// Run does all tasks and lets the figures speak.
func (l *Lab) Run(ctx context.Context) (*Outcome, error) {
	type step struct {
		t    *Task
		seed int
	}
	var steps []step
	total := 0
	for _, t := range l.tasks {
		for s := range t.Done {
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
		s.t.Done[s.seed] = v
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
	out := &Outcome{}
	for _, f := range l.after {
		if err := f(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}
