package engine

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// gathers reports whether a task is to be held back at its stage until others have come, as the rules of its queue say:
// until there are items for a batch of a preferred size, the delay is over, or it could no longer be in time. Streams
// have an order of their own, and their tasks are not held back.
func (q *queries) gathers(ref fleet.Ref) bool {
	t := q.fleet.Task(ref)
	s := t.Stage()
	return q.holds(s) && t.ReadyAt().Add(q.spec.Stages[s].Queue.Delay) > q.now && !t.Isolated()
}

// holds reports whether the rules of a stage's queue hold tasks back.
func (q *queries) holds(s serving.StageID) bool {
	r := q.spec.Stages[s].Queue
	return r != nil && r.Delay > 0 && !q.streams.ordered(s)
}

// enough is how many items of a stage end their wait for more.
func (q *queries) enough(s serving.StageID) int {
	if p := q.spec.Stages[s].Queue.Preferred; len(p) > 0 {
		return p[len(p)-1]
	}
	most := 1
	for _, v := range q.spec.Stages[s].Variants {
		if !q.spec.Variants[v].Retired {
			most = max(most, q.spec.Variants[v].MaxBatch)
		}
	}
	return most
}

// gather holds a task back, or lets tasks go that are held back at its stage.
func (q *queries) gather(ref fleet.Ref) {
	s := q.fleet.Task(ref).Stage()
	q.fleet.WaitTurn(ref)
	q.letGoPreferred(s)
}

// letGoPreferred lets the first of the tasks go that are held back at a stage, if their items make up a preferred size;
// of several sizes the largest. All go when there are as many as the largest preferred size.
func (q *queries) letGoPreferred(s serving.StageID) {
	held, preferred := q.fleet.AwaitingTurn(s), q.spec.Stages[s].Queue.Preferred
	largest, n := q.enough(s), 0
	items, k := 0, 0
	for ref := held.Head(); ref != fleet.Nil && items < largest; ref = q.fleet.Next(ref) {
		items += q.fleet.Task(ref).Items()
		k++
		if slices.Contains(preferred, items) {
			n = k
		}
	}
	if n == 0 && items >= largest {
		n = held.Len()
	}
	q.letGo(s, n)
}

// letGo lets the first n of the tasks that are held back at a stage wait for instances, and holds the others back until
// the delay of one of them is over, or it has to start to be in time.
func (q *queries) letGo(s serving.StageID, n int) {
	held := q.fleet.AwaitingTurn(s)
	for range n {
		ref := held.Head()
		q.fleet.Dequeue(ref)
		q.fleet.Wait(ref)
	}
	q.agenda.holdUntil(s, q.mustGo(s))
	if n > 0 {
		q.agenda.routeStage(s)
	}
	q.agenda.setStageTimer(s)
}

// mustGo is when the delay of one of the tasks that are held back at a stage is over, or it has to start to be in time;
// serving.Never where none is held back. The end of a task's time in its queue is no reason to start it: it is given up
// then, or put back.
func (q *queries) mustGo(s serving.StageID) serving.Time {
	held, until := q.fleet.AwaitingTurn(s), serving.Never
	for ref := held.Head(); ref != fleet.Nil; ref = q.fleet.Next(ref) {
		t := q.fleet.Task(ref)
		until = min(until, t.ReadyAt().Add(q.spec.Stages[s].Queue.Delay))
		if at := t.DropAt(); q.drops(s) && at != t.StartBy() {
			until = min(until, at)
		}
	}
	return until
}

// letGoDue lets the tasks of a stage go when the delay of one of them is over, or it must start now to be in time. It
// is called again when held tasks were given up or put back.
func (q *queries) letGoDue(s serving.StageID) {
	switch held := q.fleet.AwaitingTurn(s); {
	case !q.holds(s) || held.Len() == 0:
	case q.mustGo(s) <= q.now:
		q.letGo(s, held.Len())
	default:
		q.letGoPreferred(s)
	}
}

// full reports whether so many queries of a level of priority wait at a stage that no more may.
func (q *queries) full(s serving.StageID, level int) bool {
	r := q.spec.Stages[s].Queue
	if level == 0 || r.Levels[level-1].Limit == 0 {
		return false
	}
	left := r.Levels[level-1].Limit
	count := func(queue *fleet.Queue) {
		for ref := queue.Head(); ref != fleet.Nil && left > 0; ref = q.fleet.Next(ref) {
			t := q.fleet.Task(ref)
			// Deferred ones have waited long enough to be given up, and those with an answer need not be served.
			if int(t.Priority()) == level && t.Offset() == 0 && !t.Deferred() && t.Hint() == 0 {
				left--
			}
		}
	}
	count(q.fleet.Central(s))
	count(q.fleet.AwaitingTurn(s))
	for _, i := range q.fleet.Ready(s) {
		count(i.Queue())
	}
	return left <= 0
}

// limit sets what the rules of its stage's queue mean for some work of a query.
func (q *queries) limit(w *fleet.Work, x *serving.Query) {
	r := q.spec.Stages[w.Stage].Queue
	level := r.Level(x.Priority)
	if level == 0 {
		return
	}
	l := &r.Levels[level-1]
	if x.Priority >= 0 { // a tenant's query beyond its share stays behind all others
		w.Priority = int32(level)
	}
	timeout := l.Timeout
	if l.Override && x.QueueTimeout > 0 && (timeout == 0 || x.QueueTimeout < timeout) {
		timeout = x.QueueTimeout
		w.OwnTimeout = true
	}
	if timeout > 0 {
		w.StartBy, w.Defers = w.Ready.Add(timeout), l.Defers
		// Tasks come to later stages in another order than that of their deadlines.
		w.OwnTimeout = w.OwnTimeout || w.Stage != q.spec.Source(x.App)
	}
}
