package fleet

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Launch adds an instance in state Launching and gives it the next ID. It copies p.
func (f *Fleet) Launch(p Placement, now serving.Time) *Instance {
	p.Built = max(p.Built, p.Slots)
	p.Variants = slices.Clone(p.Variants)
	for k := range p.Variants {
		p.Variants[k].pinnedOnly = f.spec.BelowFloor(p.Variants[k].Variant)
	}
	i := &Instance{
		id: serving.InstanceID(len(f.instances) + 1), p: p, state: Launching, active: -1, fastest: -1,
		queue: newQueue(), running: make([]Batch, 0, p.Built), choice: serving.None, wake: serving.Never, launched: now,
	}
	f.share(i)
	f.instances = append(f.instances, i)
	f.live = append(f.live, i)
	return i
}

// MarkWarm records that variant v of instance i has been loaded and run. The variant gets no work before Warm or
// Refresh.
func (f *Fleet) MarkWarm(i *Instance, v serving.VariantID) {
	if k := i.Find(v); k >= 0 {
		i.p.Variants[k].Warm = true
	}
}

// Warm records that variant v of instance i has been loaded and run. The first one makes the instance ready. It does
// nothing for a variant that is not there.
func (f *Fleet) Warm(i *Instance, v serving.VariantID) {
	if i.Find(v) < 0 || i.state == Stopped {
		return
	}
	f.MarkWarm(i, v)
	if i.state == Launching {
		i.state = Ready
		f.updateReady(i)
	}
	f.Refresh(i)
}

// SetStandby records whether a loaded instance waits for its predecessor.
func (f *Fleet) SetStandby(i *Instance, waits bool) { i.standby = waits }

// Rest takes an instance out of the ready ones of its stage until a time, serving.Never leaves that open, or puts it
// back among them with 0. No task may wait on it.
func (f *Fleet) Rest(i *Instance, until serving.Time) {
	was := i.serves()
	if i.rest = until; was != i.serves() {
		f.updateReady(i)
	}
}

// SetWake records when the batcher of an instance wants to be called again; serving.Never when it does not.
func (f *Fleet) SetWake(i *Instance, at serving.Time) { i.wake = at }

// SetTerms gives an instance the terms of another plan. Refresh must follow.
func (f *Fleet) SetTerms(i *Instance, t Terms) {
	i.p.Terms = t
	if i.shared != nil {
		i.shared.setLevel()
	}
}

// AddVariant appends a variant to those of an instance. Refresh must follow.
func (f *Fleet) AddVariant(i *Instance, l Loaded) {
	l.pinnedOnly = f.spec.BelowFloor(l.Variant)
	i.p.Variants = append(i.p.Variants, l)
}

// RemoveVariant removes the k-th variant of an instance. Those behind it move up. Refresh must follow.
func (f *Fleet) RemoveVariant(i *Instance, k int) {
	i.p.Variants = slices.Delete(i.p.Variants, k, k+1)
	if i.active > k {
		i.active--
	} else if i.active == k {
		i.active = -1
	}
}

// UnwantAll marks all variants of an instance as unwanted. Want for some of them and Refresh must follow.
func (f *Fleet) UnwantAll(i *Instance) {
	for k := range i.p.Variants {
		i.p.Variants[k].Wanted = false
	}
}

// Want marks the k-th variant of an instance as wanted. Refresh must follow.
func (f *Fleet) Want(i *Instance, k int) { i.p.Variants[k].Wanted = true }

// SetLimit sets the batch limit, in items, of the k-th variant of an instance. Refresh must follow.
func (f *Fleet) SetLimit(i *Instance, k, limit int) { i.p.Variants[k].Limit = limit }

// LoadOrdered records that the delayed load of the k-th variant of an instance is ordered.
func (f *Fleet) LoadOrdered(i *Instance, k int) { i.p.Variants[k].Delayed = false }

// SetActive makes the k-th variant of an instance its active one. Refresh must follow; it reverts the choice of a
// variant that is not usable.
func (f *Fleet) SetActive(i *Instance, k int) { i.active = k }

// Refresh recomputes what follows from an instance's variants and terms, after they changed. Its active variant stays
// if it is usable; otherwise the first usable one becomes active.
func (f *Fleet) Refresh(i *Instance) {
	f.changes++
	f.chooseFastest(i)
	f.countKind(i)
	if i.active >= len(i.p.Variants) || i.active >= 0 && !i.p.Variants[i.active].Usable() {
		i.active = -1
	}
	if i.active < 0 {
		i.active = slices.IndexFunc(i.p.Variants, Loaded.Usable)
	}
	f.refreshQueue(i)
	f.refreshCentral(i.p.Stage)
}

func (f *Fleet) refreshQueue(i *Instance) {
	for r := i.queue.head; r != Nil; r = f.tasks[r].next {
		t := &f.tasks[r]
		t.dropAt = f.instanceDrop(i, t)
		if f.unbatched {
			i.queue.takes -= t.takes
			t.takes = f.takesAlone(i, &t.w)
			i.queue.takes += t.takes
		}
	}
	i.queue.known = false
}

// ProfileChanged recomputes what follows from the profile, after its answers changed.
func (f *Fleet) ProfileChanged() {
	for _, i := range f.live {
		f.chooseFastest(i)
		f.countKind(i)
		f.refreshQueue(i)
	}
	for s := range f.central {
		f.refreshCentral(serving.StageID(s))
	}
}

func (f *Fleet) chooseFastest(i *Instance) {
	i.fastest = -1
	for k := range i.p.Variants {
		l := &i.p.Variants[k]
		if !l.Usable() {
			continue
		}
		if i.fastest < 0 || f.profile.Latency(l.Variant, i.p.DeviceType, 1, 1) <
			f.profile.Latency(i.p.Variants[i.fastest].Variant, i.p.DeviceType, 1, 1) {
			i.fastest = k
		}
	}
}

// Drain stops new work for an instance. Queued tasks stay until they are moved.
func (f *Fleet) Drain(i *Instance) {
	if i.state == Launching || i.state == Ready {
		i.state = Draining
		f.updateReady(i)
	}
}

// KeepWarm keeps a draining instance loaded until a time.
func (f *Fleet) KeepWarm(i *Instance, until serving.Time) { i.warmUntil = until }

// EndKeepWarm ends that: the instance stops when it is idle.
func (f *Fleet) EndKeepWarm(i *Instance) { i.warmUntil = 0 }

// Resume makes a kept instance ready again, at a place in the plan on the same worker.
func (f *Fleet) Resume(i *Instance, at Key) {
	i.warmUntil, i.p.Key = 0, at
	if i.state == Draining {
		i.state = Ready
		f.updateReady(i)
	}
}

// Remove takes an instance out of the fleet. No task may wait or run on it.
func (f *Fleet) Remove(i *Instance) {
	i.state = Stopped
	f.instances[i.id-1] = nil
	f.live = remove(f.live, i)
	i.unshare()
	f.updateReady(i)
}

func remove(list []*Instance, i *Instance) []*Instance {
	return slices.DeleteFunc(list, func(o *Instance) bool { return o == i })
}
