package fleet

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

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

// Work describes a task: so many items of one query at one stage.
type Work struct {
	Query  serving.QueryID
	Stage  serving.StageID
	Items  int32
	Offset int32             // of its first item among those that the query brings to the stage
	Pin    serving.VariantID // the one variant that may serve it; serving.None when any will do
	// Deadline is that of this stage: the query's, less the time that later stages are given.
	Deadline serving.Time
	// LatestEnd is the end of this stage with which the query can still be in time if no later stage has it wait. It
	// is after Deadline where a plan gives later stages more time than they need: work that has used up its stage's
	// time is then not late yet. One before Deadline counts as Deadline.
	LatestEnd serving.Time
	Ready     serving.Time // when the stage could have begun
	// ColdUntil is set for work that found no instance ready at its stage: it may start until then, though that be
	// after its deadline. 0 for other work.
	ColdUntil   serving.Time
	MinAccuracy float64 // of the variant that serves it, in [0, 1]
	Priority    int32   // of the query; see serving.Query
	Record      Ref     // the owner's record of the query
}

// Task is one query's work at one stage: what is queued, routed and batched. A query of an app with one stage is one
// task; a stage that receives more items than a batch may hold gets several.
type Task struct {
	w       Work
	dropAt  serving.Time
	turnAt  serving.Time
	queued  serving.Time
	takes   time.Duration // that it adds to the queue where it waits, where queries run unbatched
	holder  serving.InstanceID
	rank    int32
	next    Ref // neighbours in a queue, or in a batch
	prev    Ref
	sibling Ref // next task of the same query

	place    Place
	special  bool // has requirements of its own, so that the common case needs one test
	isolated bool
	probe    bool
	attempts uint8
}

// Work returns a copy of what the task was described as.
func (t *Task) Work() Work { return t.w }

// Query returns the query that the task is work of.
func (t *Task) Query() serving.QueryID { return t.w.Query }

// Stage returns the stage that the task is work at.
func (t *Task) Stage() serving.StageID { return t.w.Stage }

// Items returns how many items of the query it is, at least 1.
func (t *Task) Items() int { return int(t.w.Items) }

// Offset returns the position of its first item among those that the query brings to the stage. It is not 0 only where
// a stage's input was split.
func (t *Task) Offset() int32 { return t.w.Offset }

// Pin returns the one variant that may serve it; serving.None when any will do.
func (t *Task) Pin() serving.VariantID { return t.w.Pin }

// Deadline returns the deadline of its stage; see Work.
func (t *Task) Deadline() serving.Time { return t.w.Deadline }

// LatestEnd returns the end of its stage with which the query can still be in time, at least Deadline; see Work.
func (t *Task) LatestEnd() serving.Time { return t.w.LatestEnd }

// DropAt returns the latest start, at the place where it waits, that is believed to meet LatestEnd.
func (t *Task) DropAt() serving.Time { return t.dropAt }

// ReadyAt returns when the stage could have begun.
func (t *Task) ReadyAt() serving.Time { return t.w.Ready }

// TurnAt returns when it had its turn in its stream; ReadyAt where it need not wait for one.
func (t *Task) TurnAt() serving.Time { return t.turnAt }

// QueuedAt returns when it joined its instance's queue.
func (t *Task) QueuedAt() serving.Time { return t.queued }

// ColdUntil returns until when it may start although it is late, because it found no instance ready; 0 for others.
func (t *Task) ColdUntil() serving.Time { return t.w.ColdUntil }

// Record returns the owner's record of the query.
func (t *Task) Record() Ref { return t.w.Record }

// Place returns where it is.
func (t *Task) Place() Place { return t.place }

// Holder returns the instance in whose queue it waits or on which it runs; 0 while it has none.
func (t *Task) Holder() serving.InstanceID { return t.holder }

// Special tells whether it has any requirement of its own: a variant, an accuracy, to run alone, or to be served late.
func (t *Task) Special() bool { return t.special }

// Isolated tells whether it runs alone: it was in a batch that failed, and must not fail others again.
func (t *Task) Isolated() bool { return t.isolated }

// Rank returns its place in the order of queues before deadlines count: smaller first.
func (t *Task) Rank() int32 { return t.rank }

// before is the order of every queue: priority, then deadline, then arrival.
func before(a, b *Task) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	if a.w.Deadline != b.w.Deadline {
		return a.w.Deadline < b.w.Deadline
	}
	return a.w.Query < b.w.Query
}

// rankOf turns a query's priority into the number that queues order by: smaller first.
func rankOf(priority int32) int32 {
	if priority <= 0 {
		return lowestRank
	}
	return priority
}

// Add takes a task from the slab and describes it as w says, which is copied. It is in no place until Wait or WaitTurn
// puts it somewhere.
func (f *Fleet) Add(w *Work) Ref {
	var r Ref
	if n := len(f.freeTasks); n > 0 {
		r = f.freeTasks[n-1]
		f.freeTasks = f.freeTasks[:n-1]
	} else {
		f.tasks = append(f.tasks, freeTask)
		r = Ref(len(f.tasks) - 1)
	}
	t := &f.tasks[r]
	t.w, t.turnAt, t.rank = *w, w.Ready, rankOf(w.Priority)
	t.w.LatestEnd = max(w.LatestEnd, w.Deadline)
	t.special = w.Pin != serving.None || w.MinAccuracy > 0 || w.ColdUntil > 0
	return r
}

// freeTask is a task that is not in use.
var freeTask = Task{next: Nil, prev: Nil, sibling: Nil}

// Release gives a task that is in no place back to the slab.
func (f *Fleet) Release(r Ref) {
	f.tasks[r] = freeTask
	f.freeTasks = append(f.freeTasks, r)
}

// SetSibling sets the next task of the same query.
func (f *Fleet) SetSibling(r, next Ref) { f.tasks[r].sibling = next }

// Attempted counts one more attempt to run a task, and returns how many there were.
func (f *Fleet) Attempted(r Ref) int {
	f.tasks[r].attempts++
	return int(f.tasks[r].attempts)
}

// Isolate has a task that is in no place run alone from now on.
func (f *Fleet) Isolate(r Ref) {
	t := &f.tasks[r]
	t.isolated, t.special = true, true
}
