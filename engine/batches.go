package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// settle routes and batches until nothing more can be done now. It ends: every round either moves a task from a central
// queue to an instance or from an instance into a batch.
func (e *Engine) settle() {
	for len(e.stages.list) > 0 || len(e.instances.list) > 0 || len(e.freed.list) > 0 || len(e.bereft.list) > 0 {
		if len(e.freed.list) > 0 {
			e.handOver()
		}
		for at := 0; at < len(e.stages.list); at++ {
			s := e.stages.list[at]
			e.stages.done(s)
			e.route(serving.StageID(s))
		}
		e.stages.list = e.stages.list[:0]
		for at := 0; at < len(e.instances.list); at++ {
			id := e.instances.list[at]
			e.instances.done(id)
			if i := e.fleet.Instance(serving.InstanceID(id)); i != nil {
				e.fill(i)
			}
		}
		e.instances.list = e.instances.list[:0]
		for at := 0; at < len(e.bereft.list); at++ {
			s := e.bereft.list[at]
			e.bereft.done(s)
			e.sweep(serving.StageID(s), false)
		}
		e.bereft.list = e.bereft.list[:0]
	}
}

func (e *Engine) route(s serving.StageID) {
	if e.fleet.Central(s).Len() == 0 || len(e.fleet.Ready(s)) == 0 {
		e.timeStage(s)
		return
	}
	e.routing = route.View{
		Now: e.now, Stage: s, Fleet: e.fleet, Plan: e.plan, Monitor: e.monitor, Touched: e.routing.Touched[:0],
	}
	e.router.Route(&e.routing)
	for _, i := range e.routing.Touched {
		e.touch(i)
	}
	e.timeStage(s)
}

// fill lets the instance's batcher start what it wants to.
func (e *Engine) fill(i *fleet.Instance) {
	i.Wake = serving.Never
	started := false
	for i.FreeSlots() > 0 && i.Queue.Len() > 0 {
		if !e.look(i) {
			continue // the head went back to its stage
		}
		d := e.batchers[i.ID-1].Decide(&e.batching)
		switch d.Action {
		case batch.Run:
			e.start(i, d)
			started = true
			continue
		case batch.Drop:
			if !e.batching.MayDrop {
				e.blame(fmt.Errorf("engine: batcher %q gave up a query under late policy serve-late", e.rule.Name()))
				d = batch.Decision{Action: batch.Run, N: 1, Variant: e.batching.Variant}
				e.start(i, d)
				started = true
				continue
			}
			e.end(e.fleet.Task(i.Queue.Head()).Record, serving.Dropped, Reason(d.Reason))
			continue
		}
		if d.Until <= e.now {
			e.blame(fmt.Errorf("engine: batcher %q asked at %v to wait until %v", e.rule.Name(), e.now, d.Until))
			d.Until = e.now + 1
		}
		i.Wake = d.Until
		break
	}
	e.timeInstance(i)
	if started && e.fleet.Central(i.Stage).Len() > 0 {
		e.stages.add(int(i.Stage)) // room in the batch being filled: central queues may use it
	}
	if i.State == fleet.Draining && i.Kept == 0 && i.Idle() {
		e.stop(i)
	}
}

// look prepares the batcher's view of the head of i's queue. When nothing on i can serve the head any more (its variant
// is gone), the head goes back to its stage and look returns false.
func (e *Engine) look(i *fleet.Instance) bool {
	q := &i.Queue
	head := e.fleet.Task(q.Head())
	at := e.fleet.Choose(i, head)
	if at < 0 {
		e.sendBack(q.Head())
		e.bereft.add(int(i.Stage))
		return false
	}
	app := &e.spec.Apps[e.spec.Stages[i.Stage].App]
	v := &e.batching
	*v = batch.View{
		Now: e.now, Fleet: e.fleet, Plan: e.plan, Monitor: e.monitor, Instance: i, SLO: app.SLO.Latency,
		MayDrop: app.Late == serving.DropLate,
		Variant: i.Variants[at].Variant, Limit: i.Variants[at].Limit, Ready: q.Len(), Items: q.Items(),
	}
	if q.Plain() {
		return true
	}
	// one that waited for a start is late, and answered all the same
	v.MayDrop = v.MayDrop && (head.Patient == 0 || head.Patient < e.now)
	// Queries with requirements of their own wait here: the batch ends at the first that cannot join it.
	v.Ready, v.Items = 0, 0
	for r := q.Head(); r != fleet.Nil && v.Items <= v.Limit; r = e.fleet.Next(r) {
		t := e.fleet.Task(r)
		if !e.fleet.Accepts(t, v.Variant) || t.Solo && v.Ready > 0 {
			v.Limit = min(v.Limit, v.Items) // nobody else can join: the batch is as full as it gets
			break
		}
		v.Ready++
		v.Items += int(t.Items)
		if t.Solo {
			v.Limit = min(v.Limit, v.Items)
			break
		}
	}
	return true
}

// waitAgain lets a task that has run without success wait again; it may be too late for that.
func (e *Engine) waitAgain(ref fleet.Ref) {
	e.wait(ref)
	e.timeStage(e.fleet.Task(ref).Stage)
}

// sendBack returns a queued task to its stage's central queue.
func (e *Engine) sendBack(ref fleet.Ref) {
	e.unwait(ref)
	e.wait(ref)
}

// start begins a batch, after checking that the batcher's wish is legal; an illegal one is reported by Check and cut
// down to what is legal.
func (e *Engine) start(i *fleet.Instance, d batch.Decision) {
	v := &e.batching
	at := i.Find(d.Variant)
	legal := d.N >= 1 && d.N <= v.Ready && at >= 0 && i.Variants[at].Warm
	if legal {
		limit := i.Variants[at].Limit
		if d.Variant == v.Variant {
			limit = v.Limit
		}
		n, _ := v.Fit(limit)
		legal = d.N <= n
		if legal && d.Variant != v.Variant && !i.Queue.Plain() {
			r := i.Queue.Head()
			for range d.N {
				legal = legal && e.fleet.Accepts(e.fleet.Task(r), d.Variant)
				r = e.fleet.Next(r)
			}
		}
	}
	if !legal {
		e.blame(fmt.Errorf("engine: batcher %q asked for %d queries on variant %d; %d are ready, %d items may run",
			e.rule.Name(), d.N, d.Variant, v.Ready, v.Limit))
		d.Variant = v.Variant
		n, _ := v.Fit(v.Limit)
		d.N = max(min(d.N, n), 1)
	}
	items := 0
	first := len(e.parts)
	r := i.Queue.Head()
	for range d.N {
		t := e.fleet.Task(r)
		items += int(t.Items)
		e.parts = append(e.parts, Part{
			Query: t.Query, Items: t.Items, Offset: t.Offset, Turn: t.Turned.Sub(t.Ready),
			Route: t.Queued.Sub(t.Turned), Queue: e.now.Sub(t.Ready),
		})
		r = e.fleet.Next(r)
	}
	e.waiting[e.spec.Stages[i.Stage].App] -= d.N
	e.nextBatch++
	expected := e.profile.Latency(d.Variant, i.DeviceType, items, e.fleet.AtOnce(i)+1)
	b := e.fleet.Start(i, e.nextBatch, d.Variant, d.N, e.now, expected)
	e.out = append(e.out, Decision{
		Kind: StartBatch, Reason: Reason(d.Reason), Instance: i.ID, Stage: i.Stage, Batch: b.ID, Variant: d.Variant,
		Items:    int32(items),
		Expected: expected, Parts: e.parts[first:len(e.parts):len(e.parts)],
	})
}

func (e *Engine) batchDone(in *Input) {
	i := e.fleet.Instance(in.Instance)
	if i == nil {
		return // lost or stopped: its queries have been sent elsewhere already
	}
	b, ok := e.fleet.Finish(i, in.Batch, e.now)
	if !ok {
		e.blame(fmt.Errorf("engine: batch %d reported done on instance %d, where it does not run", in.Batch,
			in.Instance))
		return
	}
	if e.learner != nil && in.Result == OK {
		e.learner.Observe(b.Variant, i.DeviceType, b.Items, b.AtOnce, in.Took)
	}
	if in.Result == OK {
		e.count(i, &b, in)
	}
	edges := len(e.spec.Stages[i.Stage].Next)
	late, k := false, 0
	for ref := b.Head; ref != fleet.Nil; k++ {
		next := e.fleet.Next(ref)
		late = late || e.now > e.fleet.Task(ref).Deadline
		if in.Result == OK {
			var emitted []int32
			if len(in.Emitted) >= (k+1)*edges && edges > 0 {
				emitted = in.Emitted[k*edges : (k+1)*edges]
			}
			e.served(ref, i, &b, emitted)
		} else {
			e.failed(ref, b.Tasks == 1, b.Variant)
		}
		ref = next
	}
	if o, ok := e.batchers[i.ID-1].(batch.Observer); ok && in.Result == OK {
		o.Finished(b.Tasks, late)
	}
	e.retireVariants(i)
	e.touch(i)
	if e.fleet.Central(i.Stage).Len() > 0 {
		e.stages.add(int(i.Stage))
	}
}

func (e *Engine) served(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, emitted []int32) {
	t := *e.fleet.Task(ref)
	r := t.Record
	rec := &e.records[r]
	if rec.ended {
		e.release(ref)
		return
	}
	whole := e.taskDone(r, &t, b, emitted)
	rec = &e.records[r]
	if whole {
		rec.ended = true
		e.finished(rec.query.App)
		e.ids.remove(rec.query.ID)
		e.out = append(e.out, Decision{
			Kind: EndQuery, Outcome: serving.Served, Reason: Answered, Late: e.now > rec.query.Deadline,
			Query: rec.query.ID, App: rec.query.App,
			Arrived: rec.query.Arrived, Deadline: rec.query.Deadline, Brought: rec.query.Items,
			Variant: b.Variant, Instance: i.ID, Batch: b.ID, Items: int32(b.Items), Queue: b.Started.Sub(t.Ready),
			Accuracy: rec.accuracy,
			Stages:   e.stageTimes(r),
		})
	}
	e.release(ref)
}

// failed sends a task whose batch broke back to wait, alone from now on: one bad query must not fail those that
// happened to share its batch. Alone already, it has failed.
func (e *Engine) failed(ref fleet.Ref, alone bool, v serving.VariantID) {
	t := e.fleet.Task(ref)
	rec := &e.records[t.Record]
	t.Attempts++
	switch {
	case rec.ended:
		e.release(ref)
	case alone || t.Attempts >= e.attempts:
		r := t.Record
		e.release(ref)
		e.end(r, serving.Failed, ModelFailed)
		e.out[len(e.out)-1].Variant = v // the one that failed on it
	default:
		t.Solo, t.Special = true, true
		e.waitAgain(ref)
	}
}
