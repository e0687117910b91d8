package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// maxLevels bounds the levels of priority of a queue.
const maxLevels = 100

// onTimeoutDelay has a query that has waited for its timeout go behind those that have not.
const onTimeoutDelay = "delay"

// rules are the queue's rules for deciding code; nil for none.
func (q *Queue) rules() *serving.QueueRules {
	if q == nil {
		return nil
	}
	r := &serving.QueueRules{
		Delay: time.Duration(q.Delay), Default: q.DefaultPriority,
		Preferred: slices.Compact(slices.Sorted(slices.Values(q.Preferred))),
	}
	for _, l := range q.Levels {
		r.Levels = append(r.Levels, serving.QueueLevel{
			Timeout: time.Duration(l.Timeout), Defers: l.OnTimeout == onTimeoutDelay, Override: l.OwnTimeout,
			Limit: l.Limit,
		})
	}
	if len(r.Levels) > 0 && r.Default == 0 {
		r.Default = len(r.Levels)
	}
	return r
}

// queue checks the rules of a queue.
func (c *checker) queue(q *Queue, path string) {
	if q == nil {
		return
	}
	for k, n := range q.Preferred {
		c.need(n >= 1, fmt.Sprintf("%s.preferred[%d]", path, k), "is %d, want at least 1", n)
	}
	c.need(len(q.Levels) <= maxLevels, path+".levels", "lists %d, want at most %d", len(q.Levels), maxLevels)
	c.need(q.DefaultPriority >= 0 && q.DefaultPriority <= len(q.Levels), path+".default_priority",
		"is %d, want 1 to %d, the number of levels", q.DefaultPriority, len(q.Levels))
}
