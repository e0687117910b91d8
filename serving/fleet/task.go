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
	Turn                 // waits at its stage for its turn in its stream
	Central              // waits at its stage, without an instance
	Queued               // waits in an instance's queue
	Running              // in a batch
)

// Waits reports whether a task in that place waits.
func (p Place) Waits() bool { return p == Turn || p == Central || p == Queued }

const (
	// beyondRank is the rank of queries of tenants beyond their share.
	beyondRank = math.MaxInt32
	// deferred is the bit of a rank that tells tasks that have waited for longer than their queue allows: they stand
	// behind the others of their priority. Other ranks are even.
	deferred = 1
	// lowestRank is the rank of queries without an explicit priority: behind every explicit one.
	lowestRank = askingRank - 4
	// askingRank is added to the ranks of queries of tenants that ask for more than their share while others do not.
	askingRank = 1 << 30
)

// BeyondShare is the priority of queries of tenants beyond their share: behind all others. Clients cannot ask for it.
const BeyondShare = -1

// Work describes a task: so many items of one query at one stage.
type Work struct {
	Query  serving.QueryID
	Stage  serving.StageID
	Items  int32
	Length int32             // of its longest item, as in serving.Query; 0 for one that is not known
	Offset int32             // of its first item among those that the query brings to the stage
	Pin    serving.VariantID // the one variant that may serve it; serving.None when any will do
	// Deadline is the deadline of this stage: the query's, less the budgets of later stages.
	Deadline serving.Time
	// LatestEnd is the latest end of this stage with which the query can still be in time, if it waits at no later
	// stage. It is after Deadline where later stages have larger budgets than they need. A value before Deadline counts
	// as Deadline.
	LatestEnd serving.Time
	Due       serving.Time // by when the last stage must end, the app's slack kept free
	Ready     serving.Time // when the stage could have begun
	// ColdUntil is set for work that found no instance ready at its stage: it may start until then, even after its
	// deadline. 0 for other work.
	ColdUntil   serving.Time
	MinAccuracy float64 // of the variant that serves it, in [0, 1]
	Priority    int32   // of the query; see serving.Query
	Asking      bool    // its tenant asks for more than its share: it waits behind those of tenants that do not
	// StartBy is the latest start that the rules of the stage's queue allow; 0 for none. OwnTimeout tells that the
	// client set it, so that tasks do not come to it in their order.
	StartBy    serving.Time
	OwnTimeout bool
	// Expires is the latest start that its client, or its tenant's share, allows; 0 where the deadline says as much.
	// Tasks do not come to it in their order.
	Expires serving.Time
	// Own says that the deadline is the client's, and is kept although the app serves late.
	Own bool
	// Tries says that variants below MinAccuracy may answer it first: the answer counts where their confidence in it
	// is worth as much. Short says what such an answer has told that did not count.
	Tries bool
	Short serving.Hint
	// Hint says what is known of the query by its first answer, which is there: only variants whose answers are better
	// may serve it. 0 for work without.
	Hint   serving.Hint
	Of     int32 // items of the query, where a hint is known of each; less than 2 where the task is the whole query
	Defers bool  // after StartBy it waits behind all others of its priority, where else it is given up
	Record Ref   // the owner's record of the query
}

// Task is the work of one query at one stage: the unit that is queued, routed and batched. A query of an app with one
// stage is one task. A stage that receives more items than a batch may hold has several.
type Task struct {
	w       Work
	dropAt  serving.Time
	turnAt  serving.Time
	queued  serving.Time
	takes   time.Duration // its part of Queue.takes, where queries run unbatched
	holder  serving.InstanceID
	rank    int32
	next    Ref // neighbours in a queue, or in a batch
	prev    Ref
	sibling Ref // next task of the same query

	place       Place
	constrained bool // it has requirements; the common case needs this test only
	isolated    bool
	probe       bool
	deferred    bool
	attempts    uint8
}

// Work returns a copy of the task's description.
func (t *Task) Work() Work { return t.w }

// Query returns the ID of its query.
func (t *Task) Query() serving.QueryID { return t.w.Query }

// Stage returns its stage.
func (t *Task) Stage() serving.StageID { return t.w.Stage }

// Items returns how many items it has, at least 1.
func (t *Task) Items() int { return int(t.w.Items) }

// Length returns that of its longest item; 0 for one that is not known.
func (t *Task) Length() int32 { return t.w.Length }

// Offset returns the position of its first item among those that the query brings to the stage. It is 0 unless a
// stage's input was split.
func (t *Task) Offset() int32 { return t.w.Offset }

// Pin returns the one variant that may serve it; serving.None when any will do.
func (t *Task) Pin() serving.VariantID { return t.w.Pin }

// Deadline returns the deadline of its stage; see Work.
func (t *Task) Deadline() serving.Time { return t.w.Deadline }

// LatestEnd returns the end of its stage with which the query can still be in time, at least Deadline; see Work.
func (t *Task) LatestEnd() serving.Time { return t.w.LatestEnd }

// Due returns by when its query must be through the last stage.
func (t *Task) Due() serving.Time { return t.w.Due }

// DropAt returns the latest start, at its present place, that is believed to meet LatestEnd.
func (t *Task) DropAt() serving.Time { return t.dropAt }

// ReadyAt returns when the stage could have begun.
func (t *Task) ReadyAt() serving.Time { return t.w.Ready }

// TurnAt returns when its turn in its stream came; ReadyAt where it need not wait for one.
func (t *Task) TurnAt() serving.Time { return t.turnAt }

// QueuedAt returns when it joined its instance's queue.
func (t *Task) QueuedAt() serving.Time { return t.queued }

// ColdUntil returns until when it may start although it is late, because it found no instance ready; 0 for other tasks.
func (t *Task) ColdUntil() serving.Time { return t.w.ColdUntil }

// MayTry returns the accuracy that it requires, where variants below it may answer first; 0 elsewhere. See Work.
func (t *Task) MayTry() float64 {
	if t.w.Tries {
		return t.w.MinAccuracy
	}
	return 0
}

// Short says what an answer has told that fell short of the accuracy it requires; 0 for none. See Work.
func (t *Task) Short() serving.Hint { return t.w.Short }

// Hint says what the query's first answer has told; 0 for a task without one. See Work.
func (t *Task) Hint() serving.Hint { return t.w.Hint }

// Of returns of how many items of its query the task is one, where each has an answer; 1 for the whole query.
func (t *Task) Of() int { return max(int(t.w.Of), 1) }

// Record returns the owner's record of the query.
func (t *Task) Record() Ref { return t.w.Record }

// Place returns its present place.
func (t *Task) Place() Place { return t.place }

// Holder returns the instance in whose queue it waits or on which it runs; 0 while it has none.
func (t *Task) Holder() serving.InstanceID { return t.holder }

// Constrained reports whether it has a requirement of its own: a variant, an accuracy, to run alone, or to be served
// after a cold start.
func (t *Task) Constrained() bool { return t.constrained }

// Probe reports whether the task is to run although it is believed to be too late; see Fleet.Probe.
func (t *Task) Probe() bool { return t.probe }

// Priority returns the priority of its query, or its level where its stage has levels.
func (t *Task) Priority() int32 { return t.w.Priority }

// StartBy returns the latest start that the rules of its stage's queue allow; 0 for none.
func (t *Task) StartBy() serving.Time { return t.w.StartBy }

// Defers reports whether it waits on behind all others of its priority after StartBy.
func (t *Task) Defers() bool { return t.w.Defers }

// Deferred reports whether it does so now.
func (t *Task) Deferred() bool { return t.deferred }

// Isolated reports whether it runs alone. It was in a batch that failed, and must not make others fail.
func (t *Task) Isolated() bool { return t.isolated }

// Rank returns its priority as queues order it: smaller first.
func (t *Task) Rank() int32 { return t.rank }

// Rank returns the rank of a task of it.
func (w *Work) Rank() int32 {
	rank := rankOf(w.Priority)
	if w.Asking && rank < beyondRank {
		return rank + askingRank
	}
	return rank
}

// BeyondShare reports whether its query is one beyond its tenant's share.
func (t *Task) BeyondShare() bool { return t.rank == beyondRank }

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
	switch {
	case priority < 0:
		return beyondRank
	case priority == 0:
		return lowestRank
	}
	return int32(min(2*int64(priority), lowestRank-2))
}

// Add allocates a task and copies w into it. It is in no place until Wait or WaitTurn.
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
	t.w, t.turnAt, t.rank = *w, w.Ready, w.Rank()
	t.w.LatestEnd = max(w.LatestEnd, w.Deadline)
	t.constrained = w.Pin != serving.None || w.MinAccuracy > 0 || w.ColdUntil > 0 || w.Hint > 0
	return r
}

// Defer has a task that is in no place wait behind all others of its priority from now on.
func (f *Fleet) Defer(r Ref) {
	t := &f.tasks[r]
	t.deferred, t.rank, t.w.StartBy = true, t.rank|deferred, 0
}

// Answer has a task that is in no place wait for a second answer from now on.
func (f *Fleet) Answer(r Ref, h serving.Hint, now serving.Time) {
	t := &f.tasks[r]
	t.w.Hint, t.w.Ready, t.turnAt, t.constrained, t.attempts = h, now, now, true, 0
}

// FallShort has a task that is in no place wait for an answer of a variant that meets its requirements, since that of
// another does not count, and has told h.
func (f *Fleet) FallShort(r Ref, h serving.Hint, now serving.Time) {
	t := &f.tasks[r]
	t.w.Tries, t.w.Short, t.w.Ready, t.turnAt, t.attempts = false, h, now, now, 0
}

// freeTask is a record of the slab that is not in use.
var freeTask = Task{next: Nil, prev: Nil, sibling: Nil}

// Release frees the record of a task that is in no place.
func (f *Fleet) Release(r Ref) {
	f.tasks[r] = freeTask
	f.freeTasks = append(f.freeTasks, r)
}

// SetSibling sets the next task of the same query.
func (f *Fleet) SetSibling(r, next Ref) { f.tasks[r].sibling = next }

// Attempted counts one more attempt to run a task and returns their number.
func (f *Fleet) Attempted(r Ref) int {
	f.tasks[r].attempts++
	return int(f.tasks[r].attempts)
}

// Isolate makes a task that is in no place run alone from now on.
func (f *Fleet) Isolate(r Ref) {
	t := &f.tasks[r]
	t.isolated, t.constrained = true, true
}
