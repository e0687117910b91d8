package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// roomWait is how long a query without a late policy waits for a plan with an instance for it.
const roomWait = 10 * time.Second

// endExpired ends the queries of a queue that could not be in time even if they started now. With late policy
// serve-late it ends those that have waited for the app's GiveUp.
func (q *queries) endExpired(queue *fleet.Queue, s serving.StageID) {
	if !q.timesOut(s) || q.fleet.EarliestDrop(queue) >= q.now {
		return
	}
	inOrder := queue.Unconstrained() && queue.SingleItems() && q.fleet.Uniform(queue) &&
		!queue.Timed() // then they expire in order
	moves := len(q.app(s).Stages) > 1 || q.spec.Stages[s].Stateful
	for r := queue.Head(); r != fleet.Nil; {
		next := q.fleet.Next(r)
		if t := q.fleet.Task(r); t.DropAt() < q.now {
			several := moves || t.Of() > 1
			if by := t.StartBy(); by > 0 && by < q.now && t.Defers() {
				q.deferTask(r)
				next = queue.Head() // a task that is put back stands further behind, perhaps in this queue
			} else if by > 0 && by < q.now {
				q.giveUp(r, serving.Dropped, QueueTimeout)
			} else {
				q.giveUp(r, serving.Dropped, WaitedTooLong)
			}
			if several {
				// Ending a query removes its other tasks, perhaps next, and gives another task of its stream the turn.
				next = queue.Head()
			}
		} else if inOrder {
			break
		}
		r = next
	}
}

// deferTask puts a task that has waited for longer than its queue allows behind all others of its priority. If it is
// held back it stays so: which tasks may go is known when all that have waited too long are dealt with.
func (q *queries) deferTask(ref fleet.Ref) {
	held := q.gathers(ref)
	q.dequeue(ref)
	q.fleet.Defer(ref)
	if held {
		q.count(q.fleet.Task(ref), 1)
		q.fleet.WaitTurn(ref)
		return
	}
	q.wait(ref)
}

// endUnservable ends the queries waiting at a stage that no instance, present or coming, may serve, that the plan has
// no instance for, and that no start will serve. Under serve-late they would wait for ever.
func (q *queries) endUnservable(s serving.StageID) {
	q.endWaiting(s, NothingLoaded, func(w *fleet.Work, lacks Reason) bool {
		return !q.admission.startsOnDemand(s, lacks) && !q.admission.planned(w)
	})
}

// endUnserved ends the queries waiting at a stage that no instance, present or coming, may serve, whatever the plan
// says.
func (q *queries) endUnserved(s serving.StageID) {
	q.endWaiting(s, NothingLoaded, func(*fleet.Work, Reason) bool { return true })
}

// endUnplaced is called when the planner has answered. It ends queries that no late policy ends, that no instance
// present or coming serves, and that have waited for plans for roomWait.
func (q *queries) endUnplaced() {
	if !q.admission.wakes {
		return
	}
	for s := range q.spec.Stages {
		id := serving.StageID(s)
		if q.drops(id) {
			continue
		}
		q.endWaiting(id, NoRoom, func(w *fleet.Work, _ Reason) bool {
			return q.now.Sub(w.Ready) >= roomWait && !q.admission.planned(w)
		})
	}
}

// endWaiting ends the queries waiting at a stage that no instance there could serve, where ends returns true.
func (q *queries) endWaiting(s serving.StageID, why Reason, ends func(w *fleet.Work, lacks Reason) bool) {
	for _, queue := range [...]*fleet.Queue{q.fleet.AwaitingTurn(s), q.fleet.Central(s)} {
		for r := queue.Head(); r != fleet.Nil; {
			next := q.fleet.Next(r)
			w := q.fleet.Task(r).Work()
			if ok, lacks := q.admission.admits(&w); !ok && ends(&w, lacks) {
				q.giveUp(r, serving.Failed, why).Retry = q.admission.rents
				next = queue.Head() // ending a query may remove other tasks of it
			}
			r = next
		}
	}
}

// endClosed follows closed apps until their last query has ended. It ends queries without an instance, after an
// eviction or a loss. closed reports whether an app has none left, changed whether anything was done.
func (q *queries) endClosed() (closed, changed bool) {
	was, decided := len(q.closing), len(q.out.list)
	for _, a := range q.closing {
		for _, s := range q.spec.Apps[a].Stages {
			if q.waits(s) {
				q.endUnserved(s)
			}
		}
	}
	q.closing = slices.DeleteFunc(q.closing, func(a serving.AppID) bool { return q.pending[a] == 0 })
	closed = len(q.closing) < was
	return closed, closed || len(q.out.list) > decided
}
