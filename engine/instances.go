package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// instances launches, loads, unloads and stops single instances.
type instances struct {
	*world
	agenda *agenda
	out    *decisions
	usage  *usage
	places *places
}

// launch brings up an instance at a place as the plan wants it there.
func (x *instances) launch(k fleet.Key, want *plan.Instance, why Reason) {
	device := want.DeviceType(x.spec)
	l := &Launch{
		Key: k, Stage: want.Stage, DeviceType: device, Slots: max(want.Slots, want.Built), Cores: want.Cores,
		Accelerator: want.Accelerator, Part: want.Part,
	}
	p := fleet.Placement{
		Key: k, DeviceType: device, Stage: want.Stage, Built: want.Built, Cores: want.Cores,
		Accelerator: want.Accelerator, Terms: terms(want),
	}
	for _, v := range want.Variants {
		p.Variants = append(p.Variants, fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Wanted: true})
		l.Variants = append(l.Variants, v.Variant)
		l.BatchLimit = max(l.BatchLimit, v.Limit)
	}
	i := x.fleet.Launch(p, x.now)
	x.places.add(i)
	x.usage.launched(i)
	x.agenda.touchSharing(i) // more batches may run on its worker from now on
	d := x.out.ofInstance(LaunchInstance, why, i.ID())
	d.Stage, d.Launch = want.Stage, l
}

// terms returns the attributes that a plan may change without a load.
func terms(want *plan.Instance) fleet.Terms {
	return fleet.Terms{
		Slots: want.Slots, Share: want.Share, BatchTimeout: want.BatchTimeout, Low: want.Low, Up: want.Up,
		TimeShared: want.TimeShared,
	}
}

// load orders the load of the k-th variant of an instance.
func (x *instances) load(i *fleet.Instance, k int) {
	l := i.Variant(k)
	x.fleet.LoadOrdered(i, k)
	x.out.ofVariant(LoadVariant, Wanted, i.ID(), l.Variant).Items = int32(l.Limit)
}

// unloadUnwanted releases the variants of an instance that the plan has dropped and no batch uses.
func (x *instances) unloadUnwanted(i *fleet.Instance) {
	for k := 0; k < i.Variants(); {
		l := i.Variant(k)
		if l.Wanted || !l.Warm || i.Uses(l.Variant) {
			k++
			continue
		}
		x.fleet.RemoveVariant(i, k)
		x.fleet.Refresh(i)
		x.out.ofVariant(UnloadVariant, Unwanted, i.ID(), l.Variant)
		x.agenda.free(i.Worker())
		x.agenda.reduced.add(int(i.Stage()))
	}
}

// remove takes an instance without tasks out of the fleet.
func (x *instances) remove(i *fleet.Instance) {
	x.agenda.clearTimer(i)
	x.fleet.Remove(i)
	x.places.remove(i)
	x.agenda.free(i.Worker())
	x.agenda.touch(i)
	x.agenda.touchSharing(i)
	x.usage.removed(i)
}

// stop releases an instance without tasks.
func (x *instances) stop(i *fleet.Instance) {
	x.remove(i)
	x.out.ofInstance(StopInstance, Unplanned, i.ID())
}

// stopIfDone stops a draining instance that is idle, unless it is kept.
func (x *instances) stopIfDone(i *fleet.Instance) {
	if i.State() == fleet.Draining && i.WarmUntil() == 0 && i.Idle() {
		x.stop(i)
	}
}

// check reports an instance whose state and tasks contradict each other.
func (x *instances) check() error {
	for _, i := range x.fleet.Live() {
		if i.State() == fleet.Draining && i.Queue().Len() > 0 {
			return fmt.Errorf("instance %d drains and has %d tasks queued", i.ID(), i.Queue().Len())
		}
	}
	return x.places.check()
}
