package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Fastest returns the least time in which instance i is believed to serve t, over the warm variants that t accepts;
// profile.Unknown when there is none.
func (f *View) Fastest(i *Instance, t *Task) time.Duration { return f.FastestFor(i, &t.w) }

// FastestFor is Fastest for work that is no task yet.
func (f *View) FastestFor(i *Instance, w *Work) time.Duration {
	if w.Pin == serving.None && w.MinAccuracy == 0 {
		if i.fastest < 0 {
			return profile.Unknown
		}
		return f.profile.Latency(i.p.Variants[i.fastest].Variant, i.p.DeviceType, int(w.Items), 1)
	}
	best := profile.Unknown
	for k := range i.p.Variants {
		if l := &i.p.Variants[k]; l.usableFor(w) && f.Meets(w, l.Variant) {
			best = min(best, f.profile.Latency(l.Variant, i.p.DeviceType, int(w.Items), 1))
		}
	}
	return best
}

// Accepts tells whether variant v meets the requirements of t, and its app's accuracy floor unless t is pinned to it.
func (f *View) Accepts(t *Task, v serving.VariantID) bool {
	if !t.special {
		return !f.spec.BelowFloor(v)
	}
	return f.Meets(&t.w, v)
}

// Meets tells whether variant v meets the requirements of work, and its app's accuracy floor unless the work is pinned
// to it.
func (f *View) Meets(w *Work, v serving.VariantID) bool {
	if w.Pin != serving.None {
		return w.Pin == v && f.spec.Variants[v].Accuracy >= w.MinAccuracy
	}
	return f.spec.Variants[v].Accuracy >= w.MinAccuracy && !f.spec.BelowFloor(v)
}

// Choose returns the index of the variant of i to use for t unless a batcher knows better: the active one where it
// meets t's requirements, else the believed fastest that does; -1 when none may serve it.
func (f *View) Choose(i *Instance, t *Task) int {
	if !t.special && i.active >= 0 && t.Items() <= i.p.Variants[i.active].Limit {
		return i.active // it is usable: see Refresh
	}
	return f.ChooseFor(i, &t.w)
}

// ChooseFor is Choose for work that is no task yet.
func (f *View) ChooseFor(i *Instance, w *Work) int {
	if i.active >= 0 {
		if l := &i.p.Variants[i.active]; int(w.Items) <= l.Limit && f.Meets(w, l.Variant) {
			return i.active // it is usable: see Refresh
		}
	}
	best, at := profile.Unknown, -1
	for k := range i.p.Variants {
		l := &i.p.Variants[k]
		if !l.usableFor(w) || int(w.Items) > l.Limit || !f.Meets(w, l.Variant) {
			continue
		}
		if d := f.profile.Latency(l.Variant, i.p.DeviceType, int(w.Items), 1); at < 0 || d < best {
			best, at = d, k
		}
	}
	return at
}

// CanServe tells whether ready instance i may be given t.
func (f *View) CanServe(i *Instance, t *Task) bool { return f.Choose(i, t) >= 0 }

// Backlog returns the believed time until everything that runs and waits on i is done, were nothing else to come:
// queued items run in full batches of the active variant, or each query on its own where queries run unbatched; slots
// work in parallel, beside what runs on other instances that share the worker. extra is the items of one more query, or
// 0. It is profile.Unknown for an instance without an active variant.
func (f *View) Backlog(i *Instance, now serving.Time, extra int) time.Duration {
	limit := i.Limit()
	if limit < 1 {
		return profile.Unknown
	}
	wait := f.nextSlot(i, now).Sub(now)
	slots := time.Duration(max(i.p.Slots, 1))
	if f.unbatched {
		work := i.queue.takes
		if extra > 0 {
			work += f.takesAlone(i, extra)
		}
		return wait + work/slots
	}
	items := i.queue.items + extra
	v, concurrency := i.p.Variants[i.active].Variant, i.p.Slots+f.Concurrency(i)-len(i.running)
	var work time.Duration
	if full := items / limit; full > 0 {
		work = time.Duration(full) * f.profile.Latency(v, i.p.DeviceType, limit, concurrency)
	}
	if rest := items % limit; rest > 0 {
		work += f.profile.Latency(v, i.p.DeviceType, rest, concurrency)
	}
	return wait + work/slots
}

// nextSlot is when a slot of i is believed to be free: now, or at the end of the first of its batches.
func (f *View) nextSlot(i *Instance, now serving.Time) serving.Time {
	free := serving.Never
	if len(i.running) < i.p.Slots {
		free = now
	}
	for k := range i.running {
		end := max(now, i.running[k].Expected)
		if f.learns && end == now {
			// Believed to have ended, and has not: as long again. Else an instance of which nothing is known, whose
			// batches are believed to be short, would be given everything until the first of them ends.
			end = now.Add(now.Sub(i.running[k].Started))
		}
		free = min(free, end)
	}
	return free
}

// longest bounds the time of a query, so that a sum over a queue of what was never measured does not overflow.
const longest = 10 * time.Hour

// takesAlone is the believed time of a query of so many items on its own, on the active variant, while all slots work.
func (f *View) takesAlone(i *Instance, items int) time.Duration {
	if i.active < 0 {
		return 0
	}
	return min(f.profile.Latency(i.p.Variants[i.active].Variant, i.p.DeviceType, items, i.p.Slots), longest)
}
