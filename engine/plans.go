package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Backoff between launches of an instance that keeps failing: doubled from the first to the last.
const (
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 15 * time.Second
	// givenUp is the failed launches in a row, about eight seconds of them, after which queries that only this instance
	// could serve stop waiting for it.
	givenUp = 5
)

type relaunch struct {
	key fleet.Key
	at  serving.Time
}

// adopt puts a plan into force: instances that the plan names and that run are adjusted, missing ones launched, the
// rest drained once their replacements are ready. A plan made from an older snapshot than the last request is dropped.
func (e *Engine) adopt(p *plan.Plan) {
	if p.Snapshot < e.request || p.Validate(e.spec) != nil {
		if p.Snapshot == e.request {
			e.asked, e.again = false, e.now.Add(planAgain)
		}
		return
	}
	p = e.madeWith(p)
	e.plan, e.asked, e.grown, e.scaleDirty = p, false, false, true
	if p.Budgets != nil {
		e.tails = e.budgeted()
	}
	clear(e.planned)
	ordinals := make(map[serving.WorkerID]int32)
	order := make([]fleet.Key, 0, len(p.Instances))
	for _, i := range p.Instances {
		ordinals[i.Worker]++
		k := fleet.Key{Worker: i.Worker, Ordinal: ordinals[i.Worker]}
		if i.Place > 0 {
			k.Ordinal = i.Place
		}
		e.planned[k] = i
		order = append(order, k)
	}
	clear(e.holders)
	for _, i := range e.fleet.Live() {
		want, ok := e.planned[i.Key]
		if !ok || want.Stage != i.Stage || want.Slots > i.Built || want.Cores != i.Cores || i.State == fleet.Draining ||
			want.DeviceType(e.spec) != i.DeviceType || want.Accelerator != i.Accelerator {
			continue
		}
		if h := e.holders[i.Key]; h == nil || h.State != fleet.Ready {
			e.holders[i.Key] = i
		}
	}
	e.delayed = e.delayed[:0]
	waits := make(map[fleet.Key]bool)
	pending := e.relaunches[:0]
	for _, r := range e.relaunches {
		if _, ok := e.planned[r.key]; ok && e.holders[r.key] == nil {
			pending = append(pending, r)
			waits[r.key] = true
		}
	}
	e.relaunches = pending
	for _, k := range order {
		if e.holders[k] == nil {
			e.reuse(k)
		}
		if i := e.holders[k]; i != nil {
			e.adjust(i, e.planned[k])
		}
	}
	for _, k := range order {
		if e.holders[k] == nil && !waits[k] {
			e.launch(k, Planned)
		}
	}
	e.transition = true
	e.retire()
	for s := range e.spec.Stages {
		e.stages.add(s)
		e.sweep(serving.StageID(s), false)
	}
	e.turnAway()
}

func (e *Engine) launch(k fleet.Key, why Reason) {
	want := e.planned[k]
	e.displace(k)
	if !e.yield(k.Worker, func() bool { return e.room(k.Worker, &want) }) {
		e.delayed = append(e.delayed, delayed{k, why})
		return
	}
	device := want.DeviceType(e.spec)
	i := fleet.Instance{
		Key: k, DeviceType: device, Stage: want.Stage, Slots: want.Slots, Built: want.Built, Cores: want.Cores,
		Accelerator: want.Accelerator, Share: want.Share, Hold: want.Hold, Low: want.Low, Up: want.Up,
	}
	l := &Launch{
		Key: k, Stage: want.Stage, DeviceType: device, Slots: max(want.Slots, want.Built), Cores: want.Cores,
		Part: want.Part,
	}
	for _, v := range want.Variants {
		i.Variants = append(i.Variants, fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Wanted: true})
		l.Variants = append(l.Variants, v.Variant)
		l.BatchLimit = max(l.BatchLimit, v.Limit)
	}
	live := e.fleet.Launch(i, e.now)
	e.holders[k] = live
	e.workers[k.Worker] = append(e.workers[k.Worker], live)
	e.launched(live)
	e.batchers = append(e.batchers, e.rule.New())
	e.out = append(e.out, Decision{
		Kind: LaunchInstance, Reason: why, Instance: live.ID, Stage: want.Stage, Variant: serving.None, Launch: l,
	})
}

// adjust brings a running instance to what the plan wants of it. The variant in use serves on until its successor is
// warm, unless there is no memory for both.
func (e *Engine) adjust(i *fleet.Instance, want plan.Instance) {
	i.Slots, i.Share, i.Hold, i.Low, i.Up = want.Slots, want.Share, want.Hold, want.Low, want.Up
	for at := range i.Variants {
		i.Variants[at].Wanted = false
	}
	i.Variants = slices.DeleteFunc(i.Variants, func(l fleet.Loaded) bool {
		return l.Delayed && !slices.ContainsFunc(want.Variants, func(v plan.Variant) bool {
			return v.Variant == l.Variant
		})
	})
	tight := false
	for _, v := range want.Variants {
		if at := i.Find(v.Variant); at >= 0 {
			i.Variants[at].Wanted, i.Variants[at].Limit = true, v.Limit
			tight = tight || i.Variants[at].Delayed
			continue
		}
		l := fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Wanted: true,
			Delayed: !e.yield(i.Key.Worker, func() bool {
				return e.roomOn(i, v)
			})}
		i.Variants = append(i.Variants, l)
		tight = tight || l.Delayed
		if !l.Delayed {
			e.out = append(e.out, Decision{
				Kind: LoadVariant, Reason: Wanted, Instance: i.ID, Variant: v.Variant, Items: int32(v.Limit),
			})
		}
	}
	if at := i.Find(want.Variants[0].Variant); i.Variants[at].Warm {
		i.Active = at
	} else if i.Active >= 0 && !tight {
		i.Variants[i.Active].Wanted = true // serves on until its successor is warm
	}
	e.fleet.Refresh(i)
	e.retireVariants(i)
	e.touch(i)
}

// retireVariants releases variants that the plan has dropped and no batch uses.
func (e *Engine) retireVariants(i *fleet.Instance) {
	for at := 0; at < len(i.Variants); {
		l := i.Variants[at]
		if l.Wanted || !l.Warm || i.Using(l.Variant) {
			at++
			continue
		}
		i.Variants = append(i.Variants[:at], i.Variants[at+1:]...)
		if i.Active > at {
			i.Active--
		} else if i.Active == at {
			i.Active = -1
		}
		e.fleet.Refresh(i)
		e.out = append(e.out, Decision{Kind: UnloadVariant, Reason: Unwanted, Instance: i.ID, Variant: l.Variant})
		e.freed.add(int(i.Key.Worker))
		e.bereft.add(int(i.Stage))
	}
}

func (e *Engine) instanceChanged(in *Input) {
	i := e.fleet.Instance(in.Instance)
	if i == nil {
		return
	}
	e.scaleDirty = true
	switch in.Change {
	case VariantReady:
		e.warm(i, in.Variant)
	case LoadFailed:
		if i.State == fleet.Launching && !i.Held {
			e.spoiled(in.Variant)
			e.lose(i)
		} else if at := i.Find(in.Variant); at >= 0 && !i.Variants[at].Warm {
			e.spoiled(in.Variant)
			i.Variants = append(i.Variants[:at], i.Variants[at+1:]...)
			e.fleet.Refresh(i)
			e.freed.add(int(i.Key.Worker))
		}
	case Lost:
		e.unwell(i.Key.Worker)
		e.lose(i)
	}
	if e.transition {
		e.retire()
	}
}

func (e *Engine) warm(i *fleet.Instance, v serving.VariantID) {
	e.recovered(i, v)
	if i.State == fleet.Launching && e.occupied(i) {
		i.Held = true // until the worker's earlier instance of this place has gone; see handOver
	}
	if i.State == fleet.Draining || i.Held {
		if at := i.Find(v); at >= 0 {
			i.Variants[at].Warm = true
		}
		e.touch(i)
		return
	}
	e.fleet.Warm(i, v)
	if want, ok := e.planned[i.Key]; ok && want.Variants[0].Variant == v {
		// The variant the plan wants in front is there: whatever stood in for it may go.
		i.Active = i.Find(v)
		for at := range i.Variants {
			i.Variants[at].Wanted = false
		}
		for _, w := range want.Variants {
			if at := i.Find(w.Variant); at >= 0 {
				i.Variants[at].Wanted = true
			}
		}
		e.fleet.Refresh(i)
	}
	e.retireVariants(i)
	e.touch(i)
	e.stages.add(int(i.Stage))
}

// lose takes an instance that is gone out of the fleet; what waited or ran there waits centrally again, and what ran
// has used up an attempt. If the plan wants the instance it is launched again after a back-off.
func (e *Engine) lose(i *fleet.Instance) {
	for len(i.Running) > 0 {
		b, _ := e.fleet.Finish(i, i.Running[0].ID, e.now)
		for ref := b.Head; ref != fleet.Nil; {
			next := e.fleet.Next(ref)
			t := e.fleet.Task(ref)
			t.Attempts++
			r := t.Record
			switch {
			case e.records[r].ended:
				e.release(ref)
			case t.Attempts >= e.attempts:
				e.release(ref)
				e.end(r, serving.Failed, TriedTooOften)
			default:
				e.waitAgain(ref)
			}
			ref = next
		}
	}
	e.empty(i)
	held := e.holders[i.Key] == i
	e.remove(i)
	e.stages.add(int(i.Stage))
	if held {
		n := e.failures[i.Key]
		e.failures[i.Key] = n + 1
		wait := lastBackoff
		if n < 10 {
			wait = min(firstBackoff<<n, lastBackoff)
		}
		e.relaunches = append(e.relaunches, relaunch{i.Key, e.now.Add(wait)})
		if n >= givenUp {
			e.sweep(i.Stage, true)
		}
	}
	e.out = append(e.out, Decision{Kind: StopInstance, Reason: Relaunched, Instance: i.ID, Variant: serving.None})
}

// empty sends everything that waits on i back to its stage.
func (e *Engine) empty(i *fleet.Instance) {
	for i.Queue.Len() > 0 {
		e.sendBack(i.Queue.Head())
	}
}

func (e *Engine) relaunch() {
	for at := 0; at < len(e.relaunches); {
		r := e.relaunches[at]
		if r.at > e.now {
			at++
			continue
		}
		e.relaunches = append(e.relaunches[:at], e.relaunches[at+1:]...)
		if e.holders[r.key] == nil {
			e.launch(r.key, Relaunched)
		}
	}
}

// remove takes an instance without tasks out of the fleet.
func (e *Engine) remove(i *fleet.Instance) {
	e.timers.Remove(len(e.spec.Stages) + int(i.ID))
	e.batchers[i.ID-1] = nil
	e.fleet.Remove(i)
	if e.holders[i.Key] == i {
		delete(e.holders, i.Key)
	}
	w := &e.workers[i.Key.Worker]
	*w = slices.DeleteFunc(*w, func(o *fleet.Instance) bool { return o == i })
	e.freed.add(int(i.Key.Worker))
	e.removed(i)
}

func (e *Engine) stop(i *fleet.Instance) {
	e.remove(i)
	e.out = append(e.out, Decision{Kind: StopInstance, Reason: Unplanned, Instance: i.ID, Variant: serving.None})
}
