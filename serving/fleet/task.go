// Package fleet is what is running: instances with their life cycle, slots and queues, and the queries that wait or
// run, each in exactly one place. It records; it decides nothing.
package fleet

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Ref names a record of a slab; Nil names none. A Ref is valid until its record is freed.
type Ref int32

// Nil is the Ref of nothing.
const Nil Ref = -1

// Place says where a task is. Every live task is in exactly one place.
type Place uint8

// The places of a task.
const (
	Free    Place = iota // not in use
	Turn                 // waits at its stage for its turn: the stage serves its stream in order
	Central              // waits at its stage, not yet given to an instance
	Queued               // waits in an instance's queue
	Running              // in a batch
)

// Waits tells whether a task in that place waits.
func (p Place) Waits() bool { return p == Turn || p == Central || p == Queued }

// lowestRank is the rank of queries without an explicit priority: behind every explicit one.
const lowestRank = math.MaxInt32

// Task is one query's work at one stage: the thing that is queued, routed and batched. A query of a one-stage app is
// one task; a stage that receives more items than a batch may hold gets several.
type Task struct {
	Query    serving.QueryID
	Stage    serving.StageID
	Items    int32
	Offset   int32        // of its first item among those the query brings to the stage
	Deadline serving.Time // of this stage: the query's, less what later stages are believed to need
	// Last is the latest end of this stage with which the query can still be in time, if no later stage has it wait. It
	// is after Deadline where a plan gives later stages more than they need at least: who has used up more than a
	// stage's part is not late yet.
	Last     serving.Time
	DropAt   serving.Time // latest start, at the place where it waits, that is believed to meet Last
	Ready    serving.Time // when the stage could have begun
	Turned   serving.Time // when it had its turn; Ready where it need not wait for one
	Queued   serving.Time // when it joined its instance's queue
	Instance serving.InstanceID
	Place    Place

	// Requirements; Special is set when there is any, so that the common case needs one test.
	Special  bool
	Solo     bool // runs alone: it was in a batch that failed, and must not fail others again
	Try      bool // may start until its deadline, whatever is believed
	Attempts uint8
	Pin      serving.VariantID // serving.None when any variant will do
	// latest start of a query that found nothing ready and waits for it, if that is later; 0 for others
	Patient     serving.Time
	MinAccuracy float64

	work       time.Duration // that it adds to the queue where it waits
	rank       int32
	next, prev Ref // neighbours in a queue, or in a batch
	sibling    Ref // next task of the same query
	Record     Ref // the query
}

// Rank is what was set with SetRank.
func (t *Task) Rank() int32 { return t.rank }

// before is the order of every queue: priority, then deadline, then arrival.
func before(a, b *Task) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	if a.Deadline != b.Deadline {
		return a.Deadline < b.Deadline
	}
	return a.Query < b.Query
}

// Rank turns a query's priority into the number queues order by: smaller first.
func Rank(priority int32) int32 {
	if priority <= 0 {
		return lowestRank
	}
	return priority
}
