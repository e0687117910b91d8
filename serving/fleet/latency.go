package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Fastest returns the least believed time in which instance i serves t, over the warm variants that t accepts;
// profile.Unknown when there is none.
func (f *View) Fastest(i *Instance, t *Task) time.Duration { return f.FastestFor(i, &t.w) }

// FastestFor is Fastest for work that has no task yet.
func (f *View) FastestFor(i *Instance, w *Work) time.Duration {
	if w.Pin == serving.None && w.MinAccuracy == 0 && w.Hint == 0 {
		if i.fastest < 0 {
			return profile.Unknown
		}
		return f.alone(i.p.Variants[i.fastest].Variant, i.p.DeviceType, w, 1)
	}
	best := profile.Unknown
	for k := range i.p.Variants {
		if l := &i.p.Variants[k]; l.usableFor(w) && f.Meets(w, l.Variant) {
			best = min(best, f.alone(l.Variant, i.p.DeviceType, w, 1))
		}
	}
	return best
}

// Accepts reports whether variant v meets the requirements of t, and its app's accuracy floor unless t is pinned to it.
func (f *View) Accepts(t *Task, v serving.VariantID) bool {
	if !t.constrained {
		return !f.spec.BelowFloor(v)
	}
	return f.Meets(&t.w, v)
}

// Meets reports whether variant v meets the requirements of w, and its app's accuracy floor unless w is pinned
// to it.
func (f *View) Meets(w *Work, v serving.VariantID) bool {
	if w.Hint > 0 {
		if bin := f.spec.Stages[w.Stage].Hinted(w.Hint); bin == nil || !bin.Improves(v) {
			return false
		}
	}
	if w.Pin != serving.None {
		return w.Pin == v && f.spec.Variants[v].Accuracy >= w.MinAccuracy
	}
	if f.spec.BelowFloor(v) {
		return false
	}
	return f.spec.Variants[v].Accuracy >= w.MinAccuracy || w.Tries && w.Hint == 0 && !f.Doubts(v) &&
		f.spec.MayMeet(v, w.MinAccuracy)
}

// Choose returns the index of the variant of i to use for t, unless a batcher chooses another: the active one where it
// meets t's requirements, else the one believed fastest that does; -1 when none may serve it.
func (f *View) Choose(i *Instance, t *Task) int {
	if !t.constrained && i.active >= 0 && t.Items() <= i.p.Variants[i.active].Limit {
		return i.active // it is usable: see Refresh
	}
	return f.ChooseFor(i, &t.w)
}

// ChooseFor is Choose for work that has no task yet.
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
		if d := f.alone(l.Variant, i.p.DeviceType, w, 1); at < 0 || d < best {
			best, at = d, k
		}
	}
	return at
}

// CanServe reports whether ready instance i may be given t.
func (f *View) CanServe(i *Instance, t *Task) bool { return f.Choose(i, t) >= 0 }

// Backlog returns the believed time until all running and queued work of i is done, if no more comes. Queued items run
// in full batches of the active variant, or each query on its own where queries run unbatched. Slots work in parallel,
// at the same time as other instances that share the worker. Where instances take turns, the work of all of them
// counts. extra is the items of one more query, or 0. The result is profile.Unknown for an instance without an active
// variant.
func (f *View) Backlog(i *Instance, now serving.Time, extra int) time.Duration {
	if i.Limit() < 1 {
		return profile.Unknown
	}
	if !i.TimeShared() {
		wait := f.nextSlot(i, now, serving.Never).Sub(now)
		if len(i.running) < i.p.Slots {
			wait = 0
		}
		concurrency := i.p.Slots + f.Concurrency(i) - len(i.running)
		return wait + f.waitingWork(i, extra, concurrency)/time.Duration(max(i.p.Slots, 1))
	}
	level := max(i.shared.level, 1)
	free := serving.Never
	var work time.Duration
	for _, o := range i.shared.instances {
		free = f.nextSlot(o, now, free)
		if o == i {
			work += f.waitingWork(o, extra, level)
		} else if o.queue.n > 0 && o.active >= 0 {
			work += f.waitingWork(o, 0, level)
		}
	}
	wait := free.Sub(now)
	if i.shared.running < level {
		wait = 0
	}
	return wait + work/time.Duration(level)
}

// waitingWork is the believed time of what waits on i, and of extra items more, with so many batches at once: the sum
// over the batches. i must have an active variant.
func (f *View) waitingWork(i *Instance, extra, concurrency int) (work time.Duration) {
	if f.unbatched {
		work = i.queue.takes
		if extra > 0 {
			work += f.takesAlone(i, &Work{Items: int32(extra)})
		}
		return work
	}
	items, limit := i.queue.items+extra, i.Limit()
	v := i.p.Variants[i.active].Variant
	if full := items / limit; full > 0 {
		work = time.Duration(full) * f.profile.Latency(v, i.p.DeviceType, limit, concurrency)
	}
	if rest := items % limit; rest > 0 {
		work += f.profile.Latency(v, i.p.DeviceType, rest, concurrency)
	}
	return work
}

// nextSlot is when the first of i's batches is believed to end, or free if that is earlier.
func (f *View) nextSlot(i *Instance, now, free serving.Time) serving.Time {
	for k := range i.running {
		end := max(now, i.running[k].Expected)
		if f.learns && end == now {
			// The batch is overdue: believe that it takes as long again. Otherwise an instance without measurements,
			// whose batches are believed to be short, would get every query until the first batch ends.
			end = now.Add(now.Sub(i.running[k].Started))
		}
		free = min(free, end)
	}
	return free
}

// longest bounds the time of one query, so that sums over a queue of unmeasured ones do not overflow.
const longest = 10 * time.Hour

// takesAlone is the believed time of a query on its own, on the active variant, while all slots are busy.
func (f *View) takesAlone(i *Instance, w *Work) time.Duration {
	if i.active < 0 {
		return 0
	}
	return min(f.alone(i.p.Variants[i.active].Variant, i.p.DeviceType, w, i.p.Slots), longest)
}

// alone is the believed time of a batch of some work alone.
func (f *View) alone(v serving.VariantID, d serving.DeviceTypeID, w *Work, concurrency int) time.Duration {
	if f.lengths == nil {
		return f.profile.Latency(v, d, int(w.Items), concurrency)
	}
	return f.lengths.At(v, d, int(w.Items), concurrency, w.Length)
}

// EvenLatency returns how long a batch is believed to take whose items all have the mean length of those that come.
func (f *View) EvenLatency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return f.alone(v, d, &Work{Items: int32(items)}, concurrency)
}

// Stretch returns by what a length multiplies the part of EvenLatency beyond StretchBase; 1 for one that is not known.
func (f *View) Stretch(v serving.VariantID, d serving.DeviceTypeID, length int32) float64 {
	if f.lengths == nil {
		return 1
	}
	return f.lengths.Stretch(v, d, length)
}

// StretchBase returns the part of a batch's time that does not grow with its items, where lengths count; else 0.
func (f *View) StretchBase(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if f.lengths == nil {
		return 0
	}
	return f.lengths.Base(v, d)
}

// BatchOverhead returns the part of a batch's time that it has once, however many runs it takes, where lengths count;
// else 0.
func (f *View) BatchOverhead(d serving.DeviceTypeID) time.Duration {
	if f.lengths == nil {
		return 0
	}
	return f.lengths.Overhead(d)
}

// LongestWithin returns the longest length, up to that of some work, with which the work is believed to take at most a
// time alone; 0 where none does.
func (f *View) LongestWithin(v serving.VariantID, d serving.DeviceTypeID, w *Work, within time.Duration) int32 {
	if f.lengths == nil {
		return w.Length
	}
	return f.lengths.Longest(v, d, int(w.Items), within, w.Length)
}

// BatchLatency returns the believed time of a batch of n tasks with so many items in all, from head on in their queue
// or batch. Queries of different lengths are padded, or run one after the other (serving.Variant.Runs).
func (f *View) BatchLatency(v serving.VariantID, d serving.DeviceTypeID, head Ref, n, items,
	concurrency int) time.Duration {
	if f.lengths == nil {
		return f.profile.Latency(v, d, items, concurrency)
	}
	return f.lengths.Batch(v, d, f.Runs(v, head, n), concurrency)
}

// Runs returns the runs of a batch of n tasks, from head on in their queue or batch. They are valid until the next call
// of a method of the view.
func (f *View) Runs(v serving.VariantID, head Ref, n int) []serving.Run {
	f.runs = f.runs[:0]
	for r := head; n > 0; r, n = f.tasks[r].next, n-1 {
		w := &f.tasks[r].w
		f.runs = append(f.runs, serving.Run{Items: int(w.Items), Length: w.Length})
	}
	return f.spec.Variants[v].Runs(f.runs)
}
