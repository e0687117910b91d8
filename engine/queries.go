package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// record is an accepted query until its last task is gone.
type record struct {
	query    serving.Query
	first    fleet.Ref // its tasks, chained by Sibling
	tasks    int
	flow     int32 // into flows; -1 for apps of one stage
	ended    bool  // its outcome is decided; running tasks only finish
	accuracy float64
	patient  serving.Time // of its tasks, once one has found nothing ready; see fleet.Task
	lane     int32        // of its stream; -1 where no stage keeps the stream's order
	before   fleet.Ref    // its neighbours there
	after    fleet.Ref
}

func (e *Engine) arrive(q *serving.Query) {
	if q.App < 0 || int(q.App) >= len(e.spec.Apps) {
		e.refuse(q, UnknownApp, false)
		return
	}
	if e.spec.Apps[q.App].Closed {
		e.refuse(q, AppClosed, false)
		return
	}
	e.monitor.Add(e.now, q.App)
	e.called(q.App)
	if q.Items < 1 || q.Deadline <= q.Arrived || q.ID == 0 || e.ids.get(q.ID) != fleet.Nil {
		e.refuse(q, BadQuery, false)
		return
	}
	e.monitor.Size(q.App, q.Items)
	app := &e.spec.Apps[q.App]
	s := app.Stages[0]
	t := e.task(q, s, q.Items)
	if ok, why, retry := e.admissible(s, &t); !ok && !e.starts(s, why) {
		e.refuse(q, why, retry)
		return
	}
	if e.waiting[q.App] >= app.QueueLimit {
		e.refuse(q, QueueFull, true)
		return
	}
	if len(app.Stages) > 1 && q.MinAccuracy > 0 && !e.floorMet(app, q.MinAccuracy) {
		e.refuse(q, NoVariant, false)
		return
	}
	r := e.newRecord(q)
	e.begun(q.App)
	if len(app.Stages) > 1 {
		e.records[r].flow = e.newFlow(len(app.Stages))
		e.flows[e.records[r].flow].stages[0].items = q.Items
	}
	e.ids.put(q.ID, r)
	e.enter(r)
	ref := e.add(r, t)
	if app.Late == serving.DropLate && e.fleet.Task(ref).DropAt < e.now && !e.tries(ref) {
		e.end(r, serving.Dropped, DeadlinePassed)
	}
}

// floorMet tells whether every stage has a variant with at least the given accuracy: a floor holds stage by stage.
func (e *Engine) floorMet(app *serving.App, floor float64) bool {
	for _, s := range app.Stages {
		met := false
		for _, v := range e.spec.Stages[s].Variants {
			met = met || e.spec.Variants[v].Accuracy >= floor
		}
		if !met {
			return false
		}
	}
	return true
}

// task is the work of query q at stage s.
func (e *Engine) task(q *serving.Query, s serving.StageID, items int32) fleet.Task {
	t := fleet.Task{
		Query: q.ID, Stage: s, Items: items, Deadline: q.Deadline.Add(-e.tails[s]), Last: q.Deadline.Add(-e.needs[s]),
		Ready: e.now, Turned: e.now,
		Pin: serving.None, MinAccuracy: q.MinAccuracy, Patient: e.patience(q, s),
	}
	if q.Variant >= 0 && int(q.Variant) < len(e.spec.Variants) && e.spec.Variants[q.Variant].Stage == s {
		t.Pin = q.Variant
	}
	return t
}

// admissible tells whether anything could ever serve t.
func (e *Engine) admissible(s serving.StageID, t *fleet.Task) (ok bool, why Reason, retry bool) {
	if t.MinAccuracy > 0 || t.Pin != serving.None {
		t.Special = true
		any, below := false, false
		for _, v := range e.spec.Stages[s].Variants {
			if e.fleet.Accepts(t, v) {
				any = true
			} else if t.Pin == serving.None {
				below = true
			}
		}
		if !any {
			return false, NoVariant, false
		}
		if !below && t.Pin == serving.None {
			t.MinAccuracy, t.Special = 0, false // every variant meets the floor: no requirement
		}
	}
	for _, i := range e.fleet.Ready(s) {
		if e.fleet.CanServe(i, t) {
			return true, 0, false
		}
	}
	// Nothing that is ready can: something that is coming up may.
	large := false
	for _, i := range e.fleet.Live() {
		if i.Stage != s || i.State == fleet.Draining {
			continue
		}
		for _, l := range i.Variants {
			switch {
			case !l.Wanted || !e.fleet.Accepts(t, l.Variant):
			case int(t.Items) > l.Limit:
				large = true
			case !l.Warm || i.Held:
				return true, 0, false
			}
		}
	}
	if large {
		return false, TooLarge, false
	}
	return false, NothingLoaded, e.grown || e.planServes(t)
}

// planServes tells whether the plan has an instance for t, running or to be launched.
func (e *Engine) planServes(t *fleet.Task) bool {
	for _, i := range e.planned {
		if i.Stage != t.Stage {
			continue
		}
		for _, v := range i.Variants {
			if int(t.Items) <= v.Limit && e.fleet.Accepts(t, v.Variant) {
				return true
			}
		}
	}
	return false
}

// sweep ends what waits at a stage and nothing will come to serve: the plan has no instance for it and none will be
// started for it, or the ones it has keep failing (hopeless). Without it such queries would wait for ever under
// serve-late.
func (e *Engine) sweep(s serving.StageID, hopeless bool) {
	e.endWaiting(s, NothingLoaded, func(t *fleet.Task, lacking Reason) bool {
		return hopeless || !e.starts(s, lacking) && !e.planServes(t)
	})
}

// endWaiting ends what waits at a stage and nothing there could serve, where lost says so.
func (e *Engine) endWaiting(s serving.StageID, why Reason, lost func(t *fleet.Task, lacking Reason) bool) {
	for _, q := range [...]*fleet.Queue{e.fleet.Turns(s), e.fleet.Central(s)} {
		for r := q.Head(); r != fleet.Nil; {
			next := e.fleet.Next(r)
			t := e.fleet.Task(r)
			if ok, lacking, _ := e.admissible(s, t); !ok && lost(t, lacking) {
				e.end(t.Record, serving.Failed, why)
				next = q.Head() // ending a query may remove other tasks of it
			}
			r = next
		}
	}
}

func (e *Engine) refuse(q *serving.Query, why Reason, retry bool) {
	e.out = append(e.out, Decision{Kind: EndQuery, Outcome: serving.Refused, Reason: why, Retry: retry, Query: q.ID,
		App:     q.App,
		Arrived: q.Arrived, Deadline: q.Deadline, Brought: q.Items, Variant: serving.None})
}

func (e *Engine) newRecord(q *serving.Query) fleet.Ref {
	rec := record{query: *q, first: fleet.Nil, flow: -1, accuracy: 1, lane: -1}
	if n := len(e.free); n > 0 {
		r := e.free[n-1]
		e.free = e.free[:n-1]
		e.records[r] = rec
		return r
	}
	e.records = append(e.records, rec)
	return fleet.Ref(len(e.records) - 1)
}

// add makes a task of record r and lets it wait at its stage.
func (e *Engine) add(r fleet.Ref, t fleet.Task) fleet.Ref {
	rec := &e.records[r]
	t.Record = r
	if rec.patient = max(rec.patient, t.Patient); rec.patient > 0 {
		t.Patient = rec.patient // late from its first stage on
	}
	ref := e.fleet.NewTask(t)
	e.fleet.SetRank(ref, fleet.Rank(rec.query.Priority))
	e.fleet.SetSibling(ref, rec.first)
	rec.first = ref
	rec.tasks++
	e.wait(ref)
	return ref
}

// wait puts a task into its stage's central queue, to be routed at the end of the step; where its stream is served in
// order it waits for its turn first.
func (e *Engine) wait(ref fleet.Ref) {
	t := e.fleet.Task(ref)
	e.waiting[e.spec.Stages[t.Stage].App]++
	if x := e.seat(t); x == nil || x.task == ref {
		e.fleet.Wait(ref)
	} else {
		e.fleet.WaitTurn(ref)
		e.proceed(e.records[t.Record].lane, t.Stage)
	}
	e.stages.add(int(t.Stage)) // routing sets the queue's timer
}

// release frees a task that is in no place.
func (e *Engine) release(ref fleet.Ref) {
	e.vacate(ref)
	t := e.fleet.Task(ref)
	r := t.Record
	rec := &e.records[r]
	if rec.first == ref {
		rec.first = e.fleet.Sibling(ref)
	} else {
		at := rec.first
		for e.fleet.Sibling(at) != ref {
			at = e.fleet.Sibling(at)
		}
		e.fleet.SetSibling(at, e.fleet.Sibling(ref))
	}
	e.fleet.FreeTask(ref)
	rec.tasks--
	if rec.ended && rec.tasks == 0 {
		e.forget(r)
	}
}

func (e *Engine) forget(r fleet.Ref) {
	if f := e.records[r].flow; f >= 0 {
		e.spare = append(e.spare, f)
	}
	e.depart(r)
	e.records[r] = record{first: fleet.Nil, flow: -1, lane: -1}
	e.free = append(e.free, r)
}

func (e *Engine) cancel(id serving.QueryID) {
	if r := e.ids.get(id); r != fleet.Nil {
		e.end(r, serving.Cancelled, ClientGone)
	}
}

// end decides the outcome of a query that was not served. Its waiting tasks are removed; running ones finish unheard.
func (e *Engine) end(r fleet.Ref, o serving.Outcome, why Reason) {
	rec := &e.records[r]
	if rec.ended {
		e.blame(fmt.Errorf("engine: query %d ended twice", rec.query.ID))
		return
	}
	d := Decision{Kind: EndQuery, Outcome: o, Reason: why, Query: rec.query.ID, App: rec.query.App,
		Arrived: rec.query.Arrived, Deadline: rec.query.Deadline, Brought: rec.query.Items, Variant: serving.None}
	rec.ended = true
	e.finished(rec.query.App)
	e.ids.remove(rec.query.ID)
	e.proceedAll(r)
	if rec.tasks == 0 {
		e.forget(r)
	} else {
		for ref := rec.first; ref != fleet.Nil; {
			next := e.fleet.Sibling(ref)
			t := e.fleet.Task(ref)
			if t.Place.Waits() {
				d.Queue = e.now.Sub(t.Ready)
				e.unwait(ref)
				e.release(ref)
			}
			ref = next
		}
	}
	e.out = append(e.out, d)
}

// unwait takes a waiting task out of its queue.
func (e *Engine) unwait(ref fleet.Ref) {
	t := e.fleet.Task(ref)
	e.waiting[e.spec.Stages[t.Stage].App]--
	place, stage, instance := t.Place, t.Stage, t.Instance
	e.fleet.Take(ref)
	if place != fleet.Queued {
		e.timeStage(stage)
	} else if i := e.fleet.Instance(instance); i != nil {
		e.timeInstance(i)
		e.touch(i) // a head that is gone changes when its batch must start
	}
}
