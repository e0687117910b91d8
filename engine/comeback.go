package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// An instance that comes back after an ejection, or after losses in quick succession, gets its share step by step. It
// runs one batch at a time and rests after each: of k batches that ended well, the k-th is followed by a rest of
// passedAfter/k - 1 times its length, so that the instance is in use for k of passedAfter parts of the time. Work that
// would have waited for it goes to others. Where no other instance of its stage is ready it does not rest.

// beginTrial has an instance on trial rest from the start of a batch on. What waits on it goes elsewhere.
func (q *queries) beginTrial(i *fleet.Instance) {
	if !q.faults.onTrial(i.ID()) || !q.faults.replaceable(i) {
		return
	}
	q.sendAllBack(i)
	q.fleet.Rest(i, serving.Never)
	q.agenda.setInstanceTimer(i)
}

// endTrial sets the end of an instance's rest after a batch.
func (q *queries) endTrial(i *fleet.Instance, took time.Duration) {
	if i.RestUntil() != serving.Never || i.Running() > 0 {
		return
	}
	rest := time.Duration(0)
	if c := q.faults.conducts[i.ID()]; c != nil && c.trial {
		rest = took*passedAfter/time.Duration(max(c.good, 1)) - took
	}
	if rest <= 0 {
		q.endRest(i)
		return
	}
	q.fleet.Rest(i, q.now.Add(rest))
	q.agenda.setInstanceTimer(i)
}

// endRest lets an instance get tasks again.
func (q *queries) endRest(i *fleet.Instance) {
	q.fleet.Rest(i, 0)
	q.agenda.setInstanceTimer(i)
	q.agenda.routeStage(i.Stage())
	q.agenda.touch(i)
}

// callBack ends the rests at a stage where tasks wait and no instance is ready.
func (q *queries) callBack(s serving.StageID) {
	if len(q.fleet.Ready(s)) > 0 || !q.waits(s) {
		return
	}
	for _, i := range q.fleet.Live() {
		if i.Stage() == s && i.State() == fleet.Ready && i.RestUntil() > 0 {
			q.endRest(i)
		}
	}
}
