package engine

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// lifecycle handles the events of instances: they come up, fail to load, or are lost.
type lifecycle struct {
	*world
	agenda    *agenda
	out       *decisions
	force     *inForce
	queries   *queries
	health    *health
	backoff   *backoff
	machines  *machines
	instances *instances
}

// changed handles an event of an instance.
func (l *lifecycle) changed(i *fleet.Instance, in *Input) {
	l.agenda.scaler = true
	switch in.Change {
	case VariantReady:
		l.backoff.cameUp(i.Key())
		l.health.cameUp(i.Worker(), in.Variant)
		if ejected := l.backoff.wasEjected(i.Key()); i.State() == fleet.Launching &&
			(ejected || l.backoff.flaps(i.Key())) {
			l.queries.faults.cameBack(i.ID(), ejected)
		}
		l.warm(i, in.Variant)
	case LoadFailed:
		l.loadFailed(i, in.Variant)
	case Lost:
		l.health.workerFailed(i.Worker())
		l.lose(i)
	}
}

// machineChanged handles an event of a machine. What waits for one that can be had again is launched at once.
func (l *lifecycle) machineChanged(in *Input) {
	if l.machines.changed(in) {
		l.backoff.hasten(in.Worker)
	}
}

// warm handles a variant that is loaded. It serves, unless the instance drains or waits for its predecessor at the same
// place: the two would share a machine that was profiled for one.
func (l *lifecycle) warm(i *fleet.Instance, v serving.VariantID) {
	if i.State() == fleet.Launching && l.instances.places.hasPredecessor(i) {
		l.fleet.SetStandby(i, true) // until the predecessor has stopped: see handover
	}
	if i.State() == fleet.Draining || i.Standby() {
		l.fleet.MarkWarm(i, v)
		l.agenda.touch(i)
		return
	}
	l.fleet.Warm(i, v)
	if want, ok := l.force.wants[i.Key()]; ok && want.Variants[0].Variant == v {
		// The variant that the plan wants as active is there: its stand-in may be unloaded.
		l.fleet.SetActive(i, i.Find(v))
		l.fleet.UnwantAll(i)
		for _, w := range want.Variants {
			if k := i.Find(w.Variant); k >= 0 {
				l.fleet.Want(i, k)
			}
		}
		l.fleet.Refresh(i)
	}
	l.instances.unloadUnwanted(i)
	l.agenda.touch(i)
	l.agenda.routeStage(i.Stage())
}

// serve makes an instance serve that has waited for its predecessor.
func (l *lifecycle) serve(i *fleet.Instance) {
	l.fleet.SetStandby(i, false)
	for k := range i.Variants() {
		if v := i.Variant(k); v.Warm {
			l.warm(i, v.Variant)
			return // Warm makes all its warm variants serve
		}
	}
}

// loadFailed handles a variant that could not be loaded. An instance that was launching is lost with it. One that
// serves tries again after a back-off: else it would go on with what was to be replaced until the next plan. A variant
// that is loaded elsewhere is none to be left out by plans.
func (l *lifecycle) loadFailed(i *fleet.Instance, v serving.VariantID) {
	if i.State() == fleet.Launching && !i.Standby() {
		l.health.variantFailed(v)
		l.lose(i)
	} else if k := i.Find(v); k >= 0 && !i.Variant(k).Warm {
		if !slices.ContainsFunc(l.fleet.Ready(i.Stage()), func(o *fleet.Instance) bool {
			at := o.Find(v)
			return at >= 0 && o.Variant(at).Warm
		}) {
			l.health.variantFailed(v)
		}
		if l.instances.places.holds(i) {
			l.backoff.again(i.Key())
		}
		l.fleet.RemoveVariant(i, k)
		l.fleet.Refresh(i)
		l.agenda.free(i.Worker())
	}
}

// eject stops the instances that fail what others serve. They are launched again after a while.
func (l *lifecycle) eject() (any bool) {
	for i := l.queries.faults.ejected(); i != nil; i = l.queries.faults.ejected() {
		any = true
		l.agenda.scaler = true
		l.queries.lost(i)
		if l.instances.places.holds(i) {
			l.backoff.ejected(i.Key())
		}
		l.queries.faults.forget(i.ID())
		l.instances.remove(i)
		l.agenda.routeStage(i.Stage())
		l.out.ofInstance(StopInstance, Ejected, i.ID())
	}
	return any
}

// lose removes an instance that is gone. Its tasks wait centrally again. If the plan wants the instance, it is launched
// again after a back-off.
func (l *lifecycle) lose(i *fleet.Instance) {
	l.queries.lost(i)
	l.queries.faults.forget(i.ID())
	held := l.instances.places.holds(i)
	l.instances.remove(i)
	l.agenda.routeStage(i.Stage())
	if held && l.backoff.lost(i.Key(), l.machines.absentUntil(i.Worker())) {
		l.queries.endUnserved(i.Stage())
	}
	l.out.ofInstance(StopInstance, Relaunched, i.ID())
}
