package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// roomWait is how long a query that may wait for ever waits for a plan with an instance for it.
const roomWait = 10 * time.Second

// endExpired ends the queries of a queue of a stage whose tasks could not be in time even if they started now. With
// late policy serve-late it ends those that have waited for as long as the app lets them, if it says how long.
func (q *queries) endExpired(queue *fleet.Queue, s serving.StageID) {
	if !q.app(s).Drops() || q.fleet.EarliestDrop(queue) >= q.now {
		return
	}
	inOrder := queue.Unconstrained() && queue.SingleItems() && q.fleet.Uniform(queue) // then they expire in order
	moves := len(q.app(s).Stages) > 1 || q.spec.Stages[s].Stateful
	for r := queue.Head(); r != fleet.Nil; {
		next := q.fleet.Next(r)
		if t := q.fleet.Task(r); t.DropAt() < q.now {
			q.end(t.Record(), serving.Dropped, WaitedTooLong)
			if moves {
				// Ending a query removes its other tasks and gives one of its stream the turn, next perhaps among them.
				next = queue.Head()
			}
		} else if inOrder {
			break
		}
		r = next
	}
}

// endUnservable ends what waits at a stage and nothing will come to serve: nothing that is ready or coming may, the
// plan has no instance for it, and none will be started for it. Such queries would wait for ever under serve-late.
func (q *queries) endUnservable(s serving.StageID) {
	q.endWaiting(s, NothingLoaded, func(w *fleet.Work, lacks Reason) bool {
		return !q.admission.startsOnDemand(s, lacks) && !q.admission.planned(w)
	})
}

// endUnserved ends what waits at a stage and nothing that is ready or coming may serve, whatever the plan says.
func (q *queries) endUnserved(s serving.StageID) {
	q.endWaiting(s, NothingLoaded, func(*fleet.Work, Reason) bool { return true })
}

// endUnplaced ends, when the planner has answered, what nothing would ever end: queries that no late policy gives up,
// for which nothing runs or is to be started, and which have waited for plans for long enough.
func (q *queries) endUnplaced() {
	if !q.admission.wakes {
		return
	}
	for s := range q.spec.Stages {
		id := serving.StageID(s)
		if q.app(id).Drops() {
			continue
		}
		q.endWaiting(id, NoRoom, func(w *fleet.Work, _ Reason) bool {
			return q.now.Sub(w.Ready) >= roomWait && !q.admission.planned(w)
		})
	}
}

// endWaiting ends what waits at a stage and nothing there could serve, where ends says so.
func (q *queries) endWaiting(s serving.StageID, why Reason, ends func(w *fleet.Work, lacks Reason) bool) {
	for _, queue := range [...]*fleet.Queue{q.fleet.AwaitingTurn(s), q.fleet.Central(s)} {
		for r := queue.Head(); r != fleet.Nil; {
			next := q.fleet.Next(r)
			w := q.fleet.Task(r).Work()
			if ok, lacks := q.admission.admits(&w); !ok && ends(&w, lacks) {
				q.end(w.Record, serving.Failed, why)
				next = queue.Head() // ending a query may remove other tasks of it
			}
			r = next
		}
	}
}

// endClosed follows closed apps until their last query has ended. What nothing is left to serve, because memory was
// needed or the last instance was lost, ends here. closed tells whether an app has none left, changed whether anything
// was done.
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
