package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// keepWarm keeps instances that a plan drops loaded for a while, without queries: the turn-off delay (Scrooge §3.6).
// The worker is paid for until they go. A plan that wants their variant on their worker takes them up without a load,
// whatever number they go by there; one that wants their room evicts them at once. The demand that plans are made for
// may fall later than the load besides (scale.RateBands); what is kept here serves nobody.
type keepWarm struct {
	*world
	agenda    *agenda
	out       *decisions
	force     *inForce
	health    *health
	instances *instances
	places    *places
	delay     time.Duration // 0 keeps nothing
}

// keep has an instance that drains stay loaded for the delay. It does not when nothing of it is warm or will be of use
// again, when something else takes its place, and when its worker has failed of late.
func (w *keepWarm) keep(i *fleet.Instance) bool {
	if _, wanted := w.force.wants[i.Key()]; w.delay <= 0 || wanted || w.health.suspect(i.Worker()) ||
		!w.ofUse(i, true) {
		return false
	}
	w.fleet.KeepWarm(i, w.now.Add(w.delay))
	w.agenda.timeInstance(i)
	w.out.ofInstance(KeepInstance, Spare, i.ID())
	return true
}

// ofUse tells whether an instance has a variant that may serve queries in the world as it is; one that is warm, where
// that is asked for.
func (w *keepWarm) ofUse(i *fleet.Instance, warm bool) bool {
	if w.app(i.Stage()).Closed {
		return false
	}
	for k := range i.Variants() {
		if l := i.Variant(k); (l.Warm || !warm) && !w.spec.Variants[l.Variant].Retired {
			return true
		}
	}
	return false
}

// evict has an instance that is kept warm go.
func (w *keepWarm) evict(i *fleet.Instance) {
	w.fleet.EndKeepWarm(i)
	w.agenda.timeInstance(i)
	w.instances.stopIfDone(i)
}

// evictAt evicts the instance that is kept warm at a place of the plan, if any. A place has at most one.
func (w *keepWarm) evictAt(k fleet.Key) {
	for _, i := range w.places.byWorker[k.Worker] {
		if i.Key() == k && i.WarmUntil() > 0 {
			w.evict(i)
			return
		}
	}
}

// evictUntil evicts instances that are kept warm on a worker, the one that would go first anyhow first, until fits says
// that there is room. It tells whether there is.
func (w *keepWarm) evictUntil(worker serving.WorkerID, fits func() bool) bool {
	for !fits() {
		var first *fleet.Instance
		for _, i := range w.places.byWorker[worker] {
			if i.WarmUntil() > 0 && (first == nil || i.WarmUntil() < first.WarmUntil()) {
				first = i
			}
		}
		if first == nil {
			return false
		}
		w.evict(first)
	}
	return true
}

// evictUseless evicts what is of no use in a world that has grown.
func (w *keepWarm) evictUseless() {
	for _, i := range slices.Clone(w.fleet.Live()) {
		if i.WarmUntil() > 0 && !w.ofUse(i, false) {
			w.evict(i)
		}
	}
}

// resumeAt takes up an instance that is kept warm on the worker of a place in the plan and has what the plan wants
// first there. One that goes by the same number comes first; another one of that number is evicted. It does nothing
// while a predecessor still runs at the place.
func (w *keepWarm) resumeAt(k fleet.Key, want *plan.Instance) {
	var found, there *fleet.Instance
	for _, i := range w.places.byWorker[k.Worker] {
		if i.Key() == k {
			if there = i; i.WarmUntil() == 0 {
				return
			}
		}
		if i.WarmUntil() == 0 || !w.places.suits(i, want) {
			continue
		}
		if at := i.Find(want.Variants[0].Variant); at >= 0 && i.Variant(at).Warm && (found == nil || i.Key() == k) {
			found = i
		}
	}
	if found == nil || there != nil && there != found && !there.Idle() {
		return
	}
	if there != nil && there != found {
		w.evict(there)
	}
	w.places.holders[k] = found
	w.fleet.Resume(found, k)
	w.agenda.timeInstance(found)
	w.agenda.touch(found)
	w.out.ofInstance(ResumeInstance, Planned, found.ID())
}

// check reports an instance that is kept warm and should not be.
func (w *keepWarm) check() error {
	for _, i := range w.fleet.Live() {
		switch until := i.WarmUntil(); {
		case until == 0:
		case i.State() != fleet.Draining || w.places.holds(i):
			return fmt.Errorf("instance %d is kept warm and is %v", i.ID(), i.State())
		case until > w.now.Add(w.delay):
			return fmt.Errorf("instance %d is kept warm until %v, longer than for %v", i.ID(), until, w.delay)
		}
	}
	return nil
}
