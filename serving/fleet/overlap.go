package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// RoomToOverlap reports whether a batch may begin on an instance beside those of other instances on its worker, where
// all that take turns there run as many batches as they should.
func (i *Instance) RoomToOverlap() bool {
	return i.state == Ready && i.rest == 0 && i.TimeShared() && i.shared.running == i.shared.level &&
		len(i.running) < i.p.Slots
}

// SetOverlap has the tasks that wait on an instance begin beside what runs on its worker, as one batch more than take
// turns there. All of them then run slower.
func (f *Fleet) SetOverlap(i *Instance) { i.overlap = true }

// Overlap returns how long a batch that takes alone s on its own, and together s where as many others run all the
// while, takes beside batches that have rest s to go, and by how much it delays them. While they overlap, each advances
// by alone/together s in a second.
func Overlap(alone, together, rest time.Duration) (takes, delay time.Duration) {
	if alone <= 0 || together <= alone {
		return alone, 0
	}
	speed := float64(alone) / float64(together)
	overlap := min(float64(together), float64(rest)/speed)
	delay = time.Duration(overlap * (1 - speed))
	return alone + delay, delay
}

// overlap notes that a batch begins on an instance beside what runs on its worker.
func (f *Fleet) overlap(i *Instance, b *Batch, now serving.Time) {
	alone := f.BatchLatency(b.Variant, i.p.DeviceType, b.Head, b.Tasks, b.Items, max(b.Concurrency-1, 1))
	together := b.Expected.Sub(now)
	rest := time.Duration(0)
	for _, o := range i.shared.instances {
		for k := range o.running {
			x := &o.running[k]
			left := max(x.Expected.Sub(now), 0)
			_, delay := Overlap(alone, together, left)
			x.Overlaps, x.Expected, x.Delayed = true, x.Expected.Add(delay), x.Delayed+delay
			rest = max(rest, left)
		}
	}
	takes, delay := Overlap(alone, together, rest)
	b.Overlaps, b.Expected, b.Delayed = true, now.Add(takes), delay
}
