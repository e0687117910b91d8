package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Apps that nobody calls may be let go to the last instance, where the scaler starts them again (scale.Waker): their
// queries then wait for a start.

// Wakes tells whether apps that nothing runs of are started by their queries.
func (e *Engine) Wakes() bool { return e.waker != nil }

// called tells the scaler that an app is called which had nothing to do.
func (e *Engine) called(a serving.AppID) {
	since := e.idle[a]
	if since == serving.Never {
		return
	}
	e.idle[a] = e.now // a query that is refused was a call all the same
	if e.waker != nil && e.waker.Called(e.now, a, e.now.Sub(since)) {
		e.scaleDirty = true
	}
}

// begun counts a query that was accepted, finished one that has ended.
func (e *Engine) begun(a serving.AppID) {
	e.pending[a]++
	e.idle[a] = serving.Never
}

func (e *Engine) finished(a serving.AppID) {
	if e.pending[a]--; e.pending[a] == 0 {
		e.idle[a] = e.now
	}
}

// patience is until when a query may start that finds nothing ready at a stage; 0 for one that finds something. While
// there is nothing, every query has the scaler look.
func (e *Engine) patience(q *serving.Query, s serving.StageID) serving.Time {
	if e.waker == nil || len(e.fleet.Ready(s)) > 0 {
		return 0
	}
	e.scaleDirty = true
	if wait := e.spec.Apps[q.App].ColdWait; wait > 0 {
		return q.Arrived.Add(wait)
	}
	return 0
}

// starts tells whether what was found wanting for a query is only that nothing runs or comes up at a stage, and the
// scaler starts what is called.
func (e *Engine) starts(s serving.StageID, lacking Reason) bool {
	if e.waker == nil || lacking != NothingLoaded {
		return false
	}
	for _, i := range e.fleet.Live() {
		if i.Stage == s && i.State != fleet.Draining {
			return false
		}
	}
	return true
}

// roomWait is how long a query that may wait for ever waits for a plan with an instance for it.
const roomWait = 10 * time.Second

// turnAway ends, when the planner has answered, what nothing would ever end: queries that no late policy gives up, for
// which nothing runs or is to be started, and which have waited for plans for long enough.
func (e *Engine) turnAway() {
	if e.waker == nil {
		return
	}
	for s := range e.spec.Stages {
		id := serving.StageID(s)
		if app := &e.spec.Apps[e.spec.Stages[s].App]; app.Drops() {
			continue
		}
		e.endWaiting(id, NoRoom, func(t *fleet.Task, _ Reason) bool {
			return e.now.Sub(t.Ready) >= roomWait && !e.planServes(t)
		})
	}
}
