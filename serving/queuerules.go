package serving

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// QueueRules are limits that a model's author sets for the queue of a stage, as Triton's dynamic_batching has them.
// Whatever the router and the batcher decide, they hold. They are read-only.
type QueueRules struct {
	// Delay is how long the first of the waiting queries may be held back until enough others have come for a batch; 0
	// holds none back.
	Delay time.Duration `json:",omitzero"`
	// Preferred are numbers of items, ascending. When the first of the waiting queries make up one of them, these need
	// not wait for more, and when as many as the last of them have come, nobody needs to. Empty means the largest batch
	// that the stage's variants take.
	Preferred []int `json:",omitempty"`
	// Levels are the levels of priority, the most important first. Empty leaves priorities as they are, and sets no
	// further limits.
	Levels []QueueLevel `json:",omitempty"`
	// Default is the level, from 1, of queries with no priority and of those with a larger one than there are levels.
	Default int `json:",omitzero"`
}

// QueueLevel are the limits of one level of priority.
type QueueLevel struct {
	// Timeout is how long a query may wait before it starts; 0 sets no limit.
	Timeout time.Duration `json:",omitzero"`
	// Defers lets a query that has waited for longer wait on behind all others of its level, where else it is given up.
	Defers bool `json:",omitzero"`
	// Override lets a query's own timeout, if it is shorter, take the place of Timeout.
	Override bool `json:",omitzero"`
	// Limit is how many queries of the level may wait before new ones are refused; 0 sets no limit.
	Limit int `json:",omitzero"`
}

// Level returns the level, from 1, of a query with some priority. It is 0 where there are no levels.
func (r *QueueRules) Level(priority int32) int {
	switch {
	case r == nil || len(r.Levels) == 0:
		return 0
	case priority < 1 || int(priority) > len(r.Levels):
		return r.Default
	}
	return int(priority)
}

// Ends reports whether a query that waits for too long is given up.
func (r *QueueRules) Ends() bool {
	if r == nil {
		return false
	}
	for _, l := range r.Levels {
		if l.Timeout > 0 || l.Override {
			return true
		}
	}
	return false
}

// Proposes reports whether the objective of an app, which may be unknown, is proposed.
func (s *Spec) Proposes(a AppID) bool {
	return a >= 0 && int(a) < len(s.Apps) && s.Apps[a].SLO.Proposed
}

// SetDeadline gives a query of an app its deadline. asked is the timeout that its client asked for, 0 for none. Where
// the first stage's rules say how long queries wait, the timeout is one for its queue, and the deadline is the app's.
func (s *Spec) SetDeadline(q *Query, asked time.Duration) {
	timeout := asked
	if q.App >= 0 && int(q.App) < len(s.Apps) {
		if r := s.Stages[s.Source(q.App)].Queue; asked > 0 && r.Ends() {
			asked, q.QueueTimeout = 0, asked
		}
		timeout, q.Own = s.Apps[q.App].SLO.Latency, asked > 0 && s.Proposes(q.App)
	}
	if asked > 0 {
		timeout = asked
	}
	q.Deadline = q.Arrived.Add(timeout)
}

// check returns an error for rules that contradict themselves.
func (r *QueueRules) check() error {
	var errs []error
	if r.Delay < 0 {
		errs = append(errs, fmt.Errorf("delay is %v, want at least 0", r.Delay))
	}
	if !slices.IsSorted(r.Preferred) || len(r.Preferred) > 0 && r.Preferred[0] < 1 {
		errs = append(errs, fmt.Errorf("preferred is %v, want numbers from 1 on in ascending order", r.Preferred))
	}
	if len(r.Levels) > 0 && (r.Default < 1 || r.Default > len(r.Levels)) {
		errs = append(errs, fmt.Errorf("default_priority is %d, want 1 to %d", r.Default, len(r.Levels)))
	}
	for k, l := range r.Levels {
		if l.Timeout < 0 || l.Limit < 0 {
			errs = append(errs, fmt.Errorf("level %d: timeout is %v and limit %d, want at least 0", k+1, l.Timeout,
				l.Limit))
		}
	}
	return errors.Join(errs...)
}
