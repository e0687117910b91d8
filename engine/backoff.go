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
	// stopWaitingAfter is the number of consecutive failed launches, about eight seconds of them, after which queries
	// that only this place could serve stop waiting for it.
	stopWaitingAfter = 5
)

// backoff holds the places of the plan whose instance was lost, and when each is launched again.
type backoff struct {
	*world
	waiting  []relaunch
	failures map[fleet.Key]int // consecutive
	// ejections are those since the place last passed its probation.
	ejections map[fleet.Key]int
}

type relaunch struct {
	key fleet.Key
	at  serving.Time
}

func newBackoff(w *world) *backoff {
	return &backoff{world: w, failures: make(map[fleet.Key]int), ejections: make(map[fleet.Key]int)}
}

// lost schedules the launch at a place after its back-off. It reports whether queries should stop waiting for it.
func (b *backoff) lost(k fleet.Key) (stopWaiting bool) {
	n := b.failures[k]
	b.failures[k] = n + 1
	wait := lastBackoff
	if n < 10 {
		wait = min(firstBackoff<<n, lastBackoff)
	}
	b.waiting = append(b.waiting, relaunch{k, b.now.Add(wait)})
	return n >= stopWaitingAfter
}

// ejected schedules the launch at a place whose instance was ejected.
func (b *backoff) ejected(k fleet.Key) {
	wait := min(firstEjection<<min(b.ejections[k], 10), lastEjection)
	b.ejections[k]++
	b.waiting = append(b.waiting, relaunch{k, b.now.Add(wait)})
}

// wasEjected reports whether the last instance at a place that passed or failed its probation failed it.
func (b *backoff) wasEjected(k fleet.Key) bool { return b.ejections[k] > 0 }

// passed forgets the ejections of a place.
func (b *backoff) passed(k fleet.Key) { delete(b.ejections, k) }

// cameUp forgets the failures of a place.
func (b *backoff) cameUp(k fleet.Key) { delete(b.failures, k) }

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
