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
// Their worker is paid for until they stop. A plan that wants their variant on their worker resumes them without a
// load, at whichever place. A plan that needs their room evicts them at once. It differs from keeping demand up after
// the load has fallen (scaler ratebands): kept instances serve no query.
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

// keep keeps a draining instance loaded for the delay. It does not when none of its variants is warm and usable,
// another instance takes its place, or its worker failed of late.
func (w *keepWarm) keep(i *fleet.Instance) bool {
	if _, wanted := w.force.wants[i.Key()]; w.delay <= 0 || wanted || w.health.suspect(i.Worker()) ||
		!w.usable(i, true) {
		return false
	}
	w.fleet.KeepWarm(i, w.now.Add(w.delay))
	w.agenda.setInstanceTimer(i)
	w.out.ofInstance(KeepInstance, Spare, i.ID())
	return true
}

// usable reports whether an instance has a variant that may serve queries of the present spec, and that is warm if warm
// is set.
func (w *keepWarm) usable(i *fleet.Instance, warm bool) bool {
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

// evict ends the turn-off delay of a kept instance.
func (w *keepWarm) evict(i *fleet.Instance) {
	w.fleet.EndKeepWarm(i)
	w.agenda.setInstanceTimer(i)
	w.instances.stopIfDone(i)
}

// evictAt evicts the kept instance at a place of the plan, if any. A place has at most one.
func (w *keepWarm) evictAt(k fleet.Key) {
	for _, i := range w.places.byWorker[k.Worker] {
		if i.Key() == k && i.WarmUntil() > 0 {
			w.evict(i)
			return
		}
	}
}

// evictUntil evicts kept instances on a worker, earliest expiry first, until fits reports room. It reports whether
// there is room.
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

// evictUseless evicts kept instances without a usable variant, after the spec has grown.
func (w *keepWarm) evictUseless() {
	for _, i := range slices.Clone(w.fleet.Live()) {
		if i.WarmUntil() > 0 && !w.usable(i, false) {
			w.evict(i)
		}
	}
}

// resumeAt resumes a kept instance on the worker of a place in the plan that has the first variant the plan wants
// there. One at the same place is preferred; another one at that place is evicted. It does nothing while a predecessor
// still runs at the place.
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
	w.agenda.setInstanceTimer(found)
	w.agenda.touch(found)
	w.out.ofInstance(ResumeInstance, Planned, found.ID())
}

// check reports a kept instance that should not be kept.
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
