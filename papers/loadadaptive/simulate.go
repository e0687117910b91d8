package loadadaptive

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/pq"
)

// simulate runs the stage's workers with one variant for a span of Poisson arrivals. It returns the share of queries
// that are answered later than the objective after they arrived, and whether the objective's percentile allows it. It
// stops as soon as it is certain that the percentile is missed. A worker that ends a batch at once takes the queries
// that wait, up to its limit. Idle workers are taken in order.
func (s *stage) simulate(v *variant, limits []int, rate float64, span time.Duration, r *rand.Rand) (share float64,
	ok bool) {
	allowed := 1 - s.percentile/100
	// the number of arrivals is Poisson: five deviations above its mean
	certain := allowed * (rate*span.Seconds() + 5*math.Sqrt(rate*span.Seconds()))
	var (
		busy, idle pq.Heap // workers: the busy ones by when they are free
		queue      []int64 // arrivals
		first      int     // index in queue of the first query that waits
		late       float64
		count      float64
	)
	for w := range s.workers {
		idle.Set(w, 0)
	}
	run := func(w int, now int64, arrivals []int64) {
		ends := now + int64(v.latency[s.groupOf[w]][len(arrivals)-1])
		busy.Set(w, ends)
		for _, at := range arrivals {
			if ends-at <= int64(s.budget) {
				break // later arrivals are in time as well
			}
			late++
		}
	}
	gap := 1e9 / rate
	at, end := r.ExpFloat64()*gap, float64(span)
	for at < end && late <= certain {
		now := int64(at)
		for {
			w, free, ok := busy.Min()
			if !ok || free > now {
				break
			}
			if n := min(len(queue)-first, limits[s.groupOf[w]]); n > 0 {
				run(w, free, queue[first:first+n])
				if first += n; first == len(queue) {
					queue, first = queue[:0], 0
				}
				continue
			}
			busy.Remove(w)
			idle.Set(w, 0)
		}
		count++
		if w, _, ok := idle.Min(); ok {
			idle.Remove(w)
			run(w, now, []int64{now})
		} else {
			queue = append(queue, now)
		}
		at += r.ExpFloat64() * gap
	}
	for late <= certain && first < len(queue) {
		w, free, _ := busy.Min()
		n := min(len(queue)-first, limits[s.groupOf[w]])
		run(w, free, queue[first:first+n])
		first += n
	}
	share = late / max(count, 1)
	return share, late <= certain && share <= allowed
}
