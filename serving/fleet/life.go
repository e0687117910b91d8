package fleet

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Launch adds an instance in state Launching and gives it the next ID.
func (f *Fleet) Launch(i Instance, now serving.Time) *Instance {
	i.ID = serving.InstanceID(len(f.instances) + 1)
	i.State, i.Active, i.fastest = Launching, -1, -1
	i.Queue, i.Wake, i.Launched, i.Choice = newQueue(), serving.Never, now, serving.None
	i.Built = max(i.Built, i.Slots)
	i.Running = make([]Batch, 0, i.Built)
	p := &i
	f.placed(p)
	f.instances = append(f.instances, p)
	f.live = append(f.live, p)
	return p
}

// Warm records that variant v of instance i answers in its steady-state time; the first one makes the instance ready.
func (f *Fleet) Warm(i *Instance, v serving.VariantID) {
	at := i.Find(v)
	if at < 0 || i.State == Stopped {
		return
	}
	i.Variants[at].Warm = true
	if i.State == Launching {
		i.State = Ready
		f.refreshReady(i.Stage)
	}
	f.Refresh(i)
}

// Refresh recomputes what is derived from the instance's variants, after they or their limits changed.
func (f *Fleet) Refresh(i *Instance) {
	f.chooseFastest(i)
	if i.Active >= len(i.Variants) || i.Active >= 0 && (!i.Variants[i.Active].Warm || !i.Variants[i.Active].Wanted) {
		i.Active = -1
	}
	if i.Active < 0 {
		i.Active = slices.IndexFunc(i.Variants, func(l Loaded) bool { return l.Warm && l.Wanted })
	}
	f.refreshQueue(i)
	f.refreshCentral(i.Stage)
}

func (f *Fleet) refreshQueue(i *Instance) {
	for r := i.Queue.head; r != Nil; r = f.tasks[r].next {
		t := &f.tasks[r]
		t.DropAt = f.instanceDrop(i, t)
		if f.Alone {
			i.Queue.work -= t.work
			t.work = f.work(i, int(t.Items))
			i.Queue.work += t.work
		}
	}
	i.Queue.known = false
}

// Believe recomputes what is derived from the profile, after its answers changed.
func (f *Fleet) Believe() {
	for _, i := range f.live {
		f.chooseFastest(i)
		f.refreshQueue(i)
	}
	for s := range f.central {
		f.refreshCentral(serving.StageID(s))
	}
}

func (f *Fleet) chooseFastest(i *Instance) {
	i.fastest = -1
	for v := range i.Variants {
		l := &i.Variants[v]
		if !l.Warm || !l.Wanted {
			continue
		}
		if i.fastest < 0 || f.Profile.Latency(l.Variant, i.DeviceType, 1,
			1) < f.Profile.Latency(i.Variants[i.fastest].Variant, i.DeviceType, 1, 1) {
			i.fastest = v
		}
	}
}

// Drain keeps new work from an instance. Queued tasks stay where they are until they are moved.
func (f *Fleet) Drain(i *Instance) {
	if i.State == Launching || i.State == Ready {
		i.State = Draining
		f.refreshReady(i.Stage)
	}
}

// Resume lets work come to a draining instance that is loaded.
func (f *Fleet) Resume(i *Instance) {
	if i.State == Draining {
		i.State = Ready
		f.refreshReady(i.Stage)
	}
}

// Remove takes an instance out of the fleet. It must hold no task.
func (f *Fleet) Remove(i *Instance) {
	i.State = Stopped
	f.instances[i.ID-1] = nil
	f.live = slices.DeleteFunc(f.live, func(o *Instance) bool { return o == i })
	f.refreshReady(i.Stage)
}

func (f *Fleet) refreshReady(s serving.StageID) {
	f.serving[s] = f.serving[s][:0]
	for _, i := range f.live {
		if i.Stage == s && i.State == Ready {
			f.serving[s] = append(f.serving[s], i)
		}
	}
	f.refreshCentral(s)
}

// refreshCentral recomputes what the central queue of a stage derives from its ready instances.
func (f *Fleet) refreshCentral(s serving.StageID) {
	f.kinds[s] = f.kinds[s][:0]
	for _, i := range f.serving[s] {
		if i.fastest < 0 {
			continue
		}
		k := kind{i.Variants[i.fastest].Variant, i.DeviceType}
		if !slices.Contains(f.kinds[s], k) {
			f.kinds[s] = append(f.kinds[s], k)
		}
	}
	for _, q := range [...]*Queue{&f.central[s], &f.turns[s]} {
		for r := q.head; r != Nil; r = f.tasks[r].next {
			f.tasks[r].DropAt = f.centralDrop(&f.tasks[r])
		}
		q.known = false
	}
	f.Epoch++
}
