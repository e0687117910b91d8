package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/pq"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// agenda lists what to look at: in this step, because it has changed, and at later times, because time alone changes
// it. Owners note on it the work of owners above them. No owner calls upwards.
type agenda struct {
	*world
	timers    pq.Heap        // by stage, then the router's, then by instance: see routerTimer, instanceTimer
	global    bool           // the router decides for all stages at once
	called    bool           // such a router is to be called
	stages    dirty          // to be routed
	instances dirty          // to be filled, or removed
	freed     dirty          // workers that have released memory or a place
	reduced   dirty          // stages that have lost a variant
	held      []serving.Time // by stage, until when tasks are held back; it may be shorter
	scaler    bool           // the scaler is to decide
	sharing   []nextStart    // memory of touchSharing
	// basisChanged is when an input of planning last changed: latencies, prices, the spec, or which workers and
	// variants are usable. declared is when what clients declare last changed. 0 for never.
	basisChanged, declared serving.Time
}

func newAgenda(w *world, global bool) *agenda { return &agenda{world: w, global: global, scaler: true} }

// dirty is a set of small integers in the order of their addition.
type dirty struct {
	list []int32
	in   []bool
}

func (d *dirty) add(i int) {
	for len(d.in) <= i {
		d.in = append(d.in, false)
	}
	if !d.in[i] {
		d.in[i] = true
		d.list = append(d.list, int32(i))
	}
}

// remove takes i out, if it is there.
func (d *dirty) remove(i int) {
	if i < len(d.in) && d.in[i] {
		d.in[i] = false
		at := len(d.list) - 1
		for d.list[at] != int32(i) { // before the last there may be others, which are taken
			at--
		}
		d.list = slices.Delete(d.list, at, at+1)
	}
}

// taken marks i as looked at. It can then be added again.
func (d *dirty) taken(i int32) { d.in[i] = false }

// empty clears the list after all of it was taken.
func (d *dirty) empty() { d.list = d.list[:0] }

// clear takes everything.
func (d *dirty) clear() {
	for _, i := range d.list {
		d.in[i] = false
	}
	d.list = d.list[:0]
}

func (d *dirty) any() bool { return len(d.list) > 0 }

// routeStage adds a stage whose waiting tasks are to be routed.
func (a *agenda) routeStage(s serving.StageID) { a.stages.add(int(s)) }

// touch adds an instance that has changed: it is to be filled, or was removed.
func (a *agenda) touch(i *fleet.Instance) { a.instances.add(int(i.ID())) }

// touchSharing notes that more may now run on the worker that i shares than before. The instances that take turns there
// are to be filled, and the stages of those that wait centrally routed. The one whose first task must start soonest
// comes first.
func (a *agenda) touchSharing(i *fleet.Instance) {
	a.called = a.called || a.global
	a.sharing = a.sharing[:0]
	for _, o := range a.fleet.Sharing(i) {
		if !o.TimeShared() || a.global && o.Queue().Len() == 0 {
			continue
		}
		if at := a.latestStart(o); at < serving.Never {
			a.sharing = append(a.sharing, nextStart{o, at})
		}
	}
	slices.SortStableFunc(a.sharing, func(x, y nextStart) int { return cmp.Compare(x.start, y.start) })
	for _, x := range a.sharing {
		if !a.global && a.fleet.Central(x.of.Stage()).Len() > 0 {
			a.stages.remove(int(x.of.Stage())) // what has been added already may not be first
			a.routeStage(x.of.Stage())
		}
		a.touch(x.of)
	}
}

// vacate notes that a task has left an instance's queue without having run: tasks that wait centrally may take its
// place. No batch of that instance need ever end, so nothing else would have them routed.
func (a *agenda) vacate(i *fleet.Instance) {
	if i.Queue().Len() == 0 {
		a.touchSharing(i)
	}
	if !a.global && a.fleet.Central(i.Stage()).Len() > 0 {
		a.routeStage(i.Stage())
	}
}

// nextStart is an instance that waits for its turn on its worker.
type nextStart struct {
	of    *fleet.Instance
	start serving.Time // by which the first task that it may run must start to be in time
}

// latestStart is by when the first task that waits on an instance, or at its stage, must start there to be in time;
// serving.Never when none waits. Tasks with an answer count behind all others: being late, they lose nothing.
func (a *agenda) latestStart(i *fleet.Instance) serving.Time {
	at := serving.Never
	for _, q := range [...]*fleet.Queue{i.Queue(), a.fleet.Central(i.Stage())} {
		r := q.Head()
		for r != fleet.Nil && a.fleet.Task(r).Hint() > 0 {
			r = a.fleet.Next(r)
		}
		if r != fleet.Nil {
			at = min(at, a.fleet.LatestStart(i, a.fleet.Task(r)))
		} else if q.Len() > 0 {
			at = min(at, serving.Never-1)
		}
	}
	return at
}

// free adds a worker on which memory or a place was released.
func (a *agenda) free(w serving.WorkerID) { a.freed.add(int(w)) }

// changeBasis records that an input of planning has changed.
func (a *agenda) changeBasis() { a.basisChanged, a.scaler = a.now, true }

// declare records that what clients declare has changed.
func (a *agenda) declare() { a.declared, a.scaler = a.now, true }

// all adds everything.
func (a *agenda) all() {
	for s := range a.spec.Stages {
		a.setStageTimer(serving.StageID(s))
		a.routeStage(serving.StageID(s))
	}
	for _, i := range a.fleet.Live() {
		a.setInstanceTimer(i)
		a.touch(i)
	}
}

// routerTimer is the number of the timer of a router that decides for all stages at once.
func (a *agenda) routerTimer() int { return len(a.spec.Stages) }

// instanceTimer is the number of an instance's timer. Instances count from 1.
func (a *agenda) instanceTimer(i serving.InstanceID) int { return len(a.spec.Stages) + int(i) }

// setStageTimer sets the timer of a stage's waiting tasks to the first instant at which one of them is too late.
func (a *agenda) setStageTimer(s serving.StageID) {
	if held := a.heldUntil(s); held < serving.Never {
		a.set(int(s), min(held, a.firstDrop(s)))
		return
	}
	if !a.timesOut(s) {
		if a.spec.Stages[s].Queue != nil {
			a.timers.Remove(int(s)) // tasks were held back
		}
		return
	}
	a.set(int(s), a.firstDrop(s))
}

// firstDrop is the first instant at which a task that waits at a stage is too late; serving.Never where none ever is.
func (a *agenda) firstDrop(s serving.StageID) serving.Time {
	if !a.timesOut(s) {
		return serving.Never
	}
	first := a.fleet.EarliestDrop(a.fleet.Central(s))
	if q := a.fleet.AwaitingTurn(s); q.Len() > 0 {
		first = min(first, a.fleet.EarliestDrop(q))
	}
	return afterDrop(first)
}

// holdUntil sets until when the tasks of a stage are held back.
func (a *agenda) holdUntil(s serving.StageID, until serving.Time) {
	for len(a.held) < len(a.spec.Stages) {
		a.held = append(a.held, serving.Never)
	}
	a.held[s] = until
}

// heldUntil is until when the tasks of a stage are held back. It is serving.Never where none is.
func (a *agenda) heldUntil(s serving.StageID) serving.Time {
	if int(s) >= len(a.held) || a.fleet.AwaitingTurn(s).Len() == 0 {
		return serving.Never
	}
	return a.held[s]
}

// setInstanceTimer sets the timer of an instance: when its batcher wants to be called, the first task of its queue is
// too late, or its turn-off delay or its rest ends.
func (a *agenda) setInstanceTimer(i *fleet.Instance) {
	at := i.Wake()
	if until := i.WarmUntil(); until > 0 {
		at = min(at, until)
	}
	if until := i.RestUntil(); until > 0 {
		at = min(at, until)
	}
	if a.timesOut(i.Stage()) {
		at = min(at, afterDrop(a.fleet.EarliestDrop(i.Queue())))
	}
	a.set(a.instanceTimer(i.ID()), at)
}

func (a *agenda) set(timer int, when serving.Time) {
	if when == serving.Never {
		a.timers.Remove(timer)
		return
	}
	a.timers.Set(timer, int64(when))
}

// afterDrop is the first instant at which a task with the given latest start is too late.
func afterDrop(latest serving.Time) serving.Time {
	if latest == serving.Never {
		return serving.Never
	}
	return latest + 1
}

// clearTimer removes the timer of an instance.
func (a *agenda) clearTimer(i *fleet.Instance) { a.timers.Remove(a.instanceTimer(i.ID())) }

// next returns when the first timer is due; serving.Never when none is set.
func (a *agenda) next() serving.Time {
	if _, at, ok := a.timers.Min(); ok {
		return serving.Time(at)
	}
	return serving.Never
}

// setRouterTimer sets when a router that decides for all stages at once wants to be called.
func (a *agenda) setRouterTimer(at serving.Time) { a.set(a.routerTimer(), at) }

// due removes the first timer that is due and returns its stage or its instance; i is 0 for a stage, and s is -1 for
// the router.
func (a *agenda) due() (s serving.StageID, i serving.InstanceID, ok bool) {
	timer, at, ok := a.timers.Min()
	if !ok || serving.Time(at) > a.now {
		return 0, 0, false
	}
	a.timers.Remove(timer)
	if timer < len(a.spec.Stages) {
		return serving.StageID(timer), 0, true
	}
	if timer == a.routerTimer() {
		return serving.None, 0, true
	}
	return 0, serving.InstanceID(timer - len(a.spec.Stages)), true
}

// grow makes room for the timers of more stages, and forgets those of stages whose place is used again. It must be
// called before the spec is replaced.
func (a *agenda) grow(spec *serving.Spec, fresh []serving.StageID) {
	for _, s := range fresh {
		if int(s) < len(a.spec.Stages) {
			a.timers.Remove(int(s))
		}
	}
	serving.Forget(a.held, fresh, serving.Never)
	from, more := len(a.spec.Stages), len(spec.Stages)-len(a.spec.Stages)
	type timer struct {
		at   int
		when int64
	}
	var moved []timer
	for {
		at, when, ok := a.timers.Min()
		if !ok {
			break
		}
		a.timers.Remove(at)
		if at >= from {
			at += more
		}
		moved = append(moved, timer{at, when})
	}
	for _, t := range moved {
		a.timers.Set(t.at, t.when)
	}
}

// check reports an instance that nothing will wake: a free slot with waiting tasks, or a turn-off delay, without a
// timer.
func (a *agenda) check() error {
	for _, i := range a.fleet.Live() {
		at, timed := a.timers.Key(a.instanceTimer(i.ID()))
		if !timed && i.Queue().Len() > 0 && i.FreeSlots() > 0 {
			return fmt.Errorf("instance %d has a free slot and %d tasks queued, and nothing will wake it", i.ID(),
				i.Queue().Len())
		}
		if until := i.WarmUntil(); until > 0 && (!timed || serving.Time(at) > until) {
			return fmt.Errorf("instance %d is kept warm until %v, is woken %v at %v", i.ID(), until, timed,
				serving.Time(at))
		}
	}
	return nil
}
