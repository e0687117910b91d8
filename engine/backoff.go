package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Back-off between launches at a place whose instances keep failing. It doubles from the first to the last.
const (
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 15 * time.Second
	// Of places whose instance was ejected. It comes back on probation.
	firstEjection = time.Second
	lastEjection  = time.Minute
	// steadyFor is how many times the last back-off an instance has to stay up until the losses before are forgotten.
	// One that flaps faster is kept out longer each time.
	steadyFor = 10
	// stopWaitingAfter is the number of consecutive failed launches, about eight seconds of them, after which queries
	// that only this place could serve stop waiting for it.
	stopWaitingAfter = 5
)

// backoff holds the places of the plan whose instance was lost, or lacks a variant that could not be loaded, and when
// each is launched, or that is loaded, again.
type backoff struct {
	*world
	waiting  []relaunch
	failures map[fleet.Key]int // consecutive, without coming up
	losses   map[fleet.Key]loss
	// ejections are those since the place last passed its probation.
	ejections map[fleet.Key]int
}

// loss is of a place whose instances were lost in quick succession.
type loss struct {
	n    int           // losses
	wait time.Duration // back-off after the last
	up   serving.Time  // when an instance came up since, 0 if none has
}

// doubled is a time that doubles n times, up to the most.
func doubled(first, most time.Duration, n int) time.Duration { return min(first<<min(n, 10), most) }

type relaunch struct {
	key fleet.Key
	at  serving.Time
}

func newBackoff(w *world) *backoff {
	return &backoff{
		world: w, failures: make(map[fleet.Key]int), losses: make(map[fleet.Key]loss),
		ejections: make(map[fleet.Key]int),
	}
}

// lost schedules the launch at a place after its back-off, and not before its machine may be asked for again. It
// reports whether queries should stop waiting for it.
func (b *backoff) lost(k fleet.Key, absent serving.Time) (stopWaiting bool) {
	n := b.failures[k]
	b.failures[k] = n + 1
	l := b.losses[k]
	if l.up > 0 && b.now.Sub(l.up) >= steadyFor*l.wait {
		l = loss{}
	}
	l.wait = doubled(firstBackoff, lastBackoff, l.n)
	l.n, l.up = l.n+1, 0
	b.losses[k] = l
	b.waiting = append(b.waiting, relaunch{k, max(b.now.Add(l.wait), absent)})
	return n >= stopWaitingAfter || absent > 0
}

// again schedules that what a place lacks is loaded after its back-off.
func (b *backoff) again(k fleet.Key) {
	b.waiting = append(b.waiting, relaunch{k, b.now.Add(doubled(firstBackoff, lastBackoff, b.failures[k]))})
	b.failures[k]++
}

// hasten has the places on a worker launched at once.
func (b *backoff) hasten(w serving.WorkerID) {
	for k := range b.waiting {
		if b.waiting[k].key.Worker == w {
			b.waiting[k].at = b.now
		}
	}
}

// flaps reports whether instances at a place were lost more than once in quick succession.
func (b *backoff) flaps(k fleet.Key) bool { return b.losses[k].n > 1 }

// ejected schedules the launch at a place whose instance was ejected.
func (b *backoff) ejected(k fleet.Key) {
	wait := doubled(firstEjection, lastEjection, b.ejections[k])
	b.ejections[k]++
	b.waiting = append(b.waiting, relaunch{k, b.now.Add(wait)})
}

// wasEjected reports whether the last instance at a place that passed or failed its probation failed it.
func (b *backoff) wasEjected(k fleet.Key) bool { return b.ejections[k] > 0 }

// passed forgets the ejections of a place.
func (b *backoff) passed(k fleet.Key) { delete(b.ejections, k) }

// cameUp forgets the failures of a place.
func (b *backoff) cameUp(k fleet.Key) {
	delete(b.failures, k)
	if l, lost := b.losses[k]; lost && l.up == 0 {
		l.up = max(b.now, 1)
		b.losses[k] = l
	}
}

// keep forgets the places for which wanted is false.
func (b *backoff) keep(wanted func(fleet.Key) bool) {
	b.waiting = slices.DeleteFunc(b.waiting, func(r relaunch) bool { return !wanted(r.key) })
}

// waits reports whether a place waits for its back-off to end.
func (b *backoff) waits(k fleet.Key) bool {
	return slices.ContainsFunc(b.waiting, func(r relaunch) bool { return r.key == k })
}

// due removes a place whose back-off is over and returns it, in the order in which they were lost.
func (b *backoff) due() (k fleet.Key, ok bool) {
	for at, r := range b.waiting {
		if r.at <= b.now {
			b.waiting = slices.Delete(b.waiting, at, at+1)
			return r.key, true
		}
	}
	return fleet.Key{}, false
}

// next returns when the first back-off ends; serving.Never when nothing waits.
func (b *backoff) next() serving.Time {
	first := serving.Never
	for _, r := range b.waiting {
		first = min(first, r.at)
	}
	return first
}
