package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// gathers reports whether a task is to be held back at its stage until others have come, as the rules of its queue say:
// until there are enough items for a batch, the delay is over, or it could no longer be in time. Streams have an order
// of their own, and their tasks are not held back.
func (q *queries) gathers(ref fleet.Ref) bool {
	t := q.fleet.Task(ref)
	s := t.Stage()
	r := q.spec.Stages[s].Queue
	return r != nil && r.Delay > 0 && !q.streams.ordered(s) && t.ReadyAt().Add(r.Delay) > q.now && !t.Isolated() &&
		t.Items() < q.enough(s)
}

// enough is how many items of a stage end their wait for more.
func (q *queries) enough(s serving.StageID) int {
	if n := q.spec.Stages[s].Queue.Enough; n > 0 {
		return n
	}
	most := 1
	for _, v := range q.spec.Stages[s].Variants {
		if !q.spec.Variants[v].Retired {
			most = max(most, q.spec.Variants[v].MaxBatch)
		}
	}
	return most
}

// gather holds a task back, or lets all that are held back at its stage go.
func (q *queries) gather(ref fleet.Ref) {
	t := q.fleet.Task(ref)
	s := t.Stage()
	held := q.fleet.AwaitingTurn(s)
	q.agenda.holdUntil(s, t.ReadyAt().Add(q.spec.Stages[s].Queue.Delay), held.Len() == 0)
	q.fleet.WaitTurn(ref)
	if held.Items() >= q.enough(s) {
		q.letGo(s)
	}
	q.agenda.setStageTimer(s)
}

// letGo lets the tasks that are held back at a stage wait for instances.
func (q *queries) letGo(s serving.StageID) {
	held := q.fleet.AwaitingTurn(s)
	for held.Len() > 0 {
		ref := held.Head()
		q.fleet.Dequeue(ref)
		q.fleet.Wait(ref)
	}
	q.agenda.holdUntil(s, serving.Never, true)
	q.agenda.routeStage(s)
}

// letGoDue lets the tasks of a stage go whose delay is over, or that must start now to be in time.
func (q *queries) letGoDue(s serving.StageID) {
	if q.agenda.heldUntil(s) <= q.now {
		q.letGo(s)
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
			// Deferred ones have waited long enough to be given up, and take nobody's place.
			if int(t.Priority()) == level && t.Offset() == 0 && !t.Deferred() {
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
