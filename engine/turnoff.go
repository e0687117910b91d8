package engine

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// The turn-off delay (Scrooge §3.6): an instance that a plan drops stays loaded for a while, without queries. Its
// worker is paid for until it goes. A plan that wants its variant on its worker takes it up without a load, whatever
// number it goes by there; one that wants its room has it go at once. The demand that plans are made for may linger
// besides (scale.RateBands); what is kept here serves nobody.

// rest has an instance that drains stay loaded for the turn-off delay. It does not when there is none, when nothing of
// it is loaded or will be of use again, and when its room is waited for.
func (e *Engine) rest(i *fleet.Instance) bool {
	if e.turnOff <= 0 || e.tight(i.Key.Worker) || e.spec.Apps[e.spec.Stages[i.Stage].App].Closed ||
		e.machines[i.Key.Worker].failures > 0 {
		return false
	}
	if _, wanted := e.planned[i.Key]; wanted {
		return false // something else takes its place
	}
	if !slices.ContainsFunc(i.Variants, func(l fleet.Loaded) bool {
		return l.Warm && !e.spec.Variants[l.Variant].Retired
	}) {
		return false
	}
	i.Kept = e.now.Add(e.turnOff)
	e.timeInstance(i)
	e.out = append(e.out, Decision{Kind: KeepInstance, Reason: Spare, Instance: i.ID, Variant: serving.None})
	return true
}

// goes ends the rest of an instance.
func (e *Engine) goes(i *fleet.Instance) {
	i.Kept = 0
	e.timeInstance(i)
	if i.Idle() {
		e.stop(i)
	}
}

// reuse takes up an instance that rests on the worker of a place in the plan and has what the plan wants first there.
// One that goes by the same number comes first; another one of that number goes.
func (e *Engine) reuse(k fleet.Key) {
	want := e.planned[k]
	var found, there *fleet.Instance
	for _, i := range e.workers[k.Worker] {
		if i.Key == k {
			there = i
			if i.Kept == 0 {
				return // a predecessor that still runs: see handOver
			}
		}
		if i.Kept == 0 || i.Stage != want.Stage || i.Built < want.Slots || i.Cores != want.Cores ||
			i.DeviceType != want.DeviceType(e.spec) || i.Accelerator != want.Accelerator {
			continue
		}
		if at := i.Find(want.Variants[0].Variant); at >= 0 && i.Variants[at].Warm && (found == nil || i.Key == k) {
			found = i
		}
	}
	if found == nil || there != nil && there != found && !there.Idle() {
		return
	}
	if there != nil && there != found {
		e.goes(there)
	}
	found.Kept, found.Key = 0, k
	e.holders[k] = found
	e.fleet.Resume(found)
	e.timeInstance(found)
	e.touch(found)
	e.out = append(e.out, Decision{Kind: ResumeInstance, Reason: Planned, Instance: found.ID, Variant: serving.None})
}

// yield has what rests on a worker go, what would go first anyhow before the rest, until there is room.
func (e *Engine) yield(w serving.WorkerID, room func() bool) bool {
	for !room() {
		var next *fleet.Instance
		for _, i := range e.workers[w] {
			if i.Kept > 0 && (next == nil || i.Kept < next.Kept) {
				next = i
			}
		}
		if next == nil {
			return false
		}
		e.goes(next)
	}
	return true
}

// displace has what rests at a place go.
func (e *Engine) displace(k fleet.Key) {
	for _, i := range e.workers[k.Worker] {
		if i.Key == k && i.Kept > 0 {
			e.goes(i)
			return // there is one: what rests at the place of another goes
		}
	}
}

// tight tells whether something waits for room on a worker.
func (e *Engine) tight(w serving.WorkerID) bool {
	return e.crowded(w) || slices.ContainsFunc(e.workers[w], func(i *fleet.Instance) bool {
		return slices.ContainsFunc(i.Variants, func(l fleet.Loaded) bool { return l.Delayed })
	})
}

// outdated has everything go that rests and is of no use in a world that has grown.
func (e *Engine) outdated() {
	for _, i := range slices.Clone(e.fleet.Live()) {
		if i.Kept > 0 && (e.spec.Apps[e.spec.Stages[i.Stage].App].Closed ||
			!slices.ContainsFunc(i.Variants, func(l fleet.Loaded) bool {
				return !e.spec.Variants[l.Variant].Retired
			})) {
			e.goes(i)
		}
	}
}

// checkRest reports what is wrong with an instance's rest or with its place in the plan.
func (e *Engine) checkRest(i *fleet.Instance) error {
	if h := e.holders[i.Key]; h != nil && h.Key != i.Key {
		return fmt.Errorf("instance %d stands for place %v and is at %v", h.ID, i.Key, h.Key)
	}
	if i.Kept == 0 {
		return nil
	}
	at, timed := e.timers.Key(len(e.spec.Stages) + int(i.ID))
	switch {
	case i.State != fleet.Draining || e.holders[i.Key] == i:
		return fmt.Errorf("instance %d rests and is %v", i.ID, i.State)
	case i.Kept > e.now.Add(e.turnOff) || !timed || serving.Time(at) > i.Kept:
		return fmt.Errorf("instance %d rests until %v, is woken %v at %v", i.ID, i.Kept, timed, serving.Time(at))
	}
	return nil
}
