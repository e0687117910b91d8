// Package monitor is what has been seen of the demand, over passed-in time.
package monitor

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Buckets of a Rates and their width: half a minute of seconds.
const (
	buckets = 32
	width   = serving.Time(time.Second)
)

// Rates counts arrivals per app in one-second buckets of the last half minute.
type Rates struct {
	counts [][buckets]int64
	newest serving.Time // number of the newest bucket
}

// NewRates returns counters for n apps.
func NewRates(n int) *Rates { return &Rates{counts: make([][buckets]int64, n)} }

// Add counts one arrival.
func (r *Rates) Add(now serving.Time, app serving.AppID) {
	r.advance(now)
	r.counts[app][r.newest%buckets]++
}

func (r *Rates) advance(now serving.Time) {
	b := now / width
	if b <= r.newest {
		return
	}
	for a := range r.counts {
		for k := max(r.newest+1, b-buckets+1); k <= b; k++ {
			r.counts[a][k%buckets] = 0
		}
	}
	r.newest = b
}

// Rate returns the mean arrival rate of app in queries/s over the last whole seconds, at most window and at most half a
// minute of them; before the first second has passed, over what there is of it.
func (r *Rates) Rate(now serving.Time, app serving.AppID, window time.Duration) float64 {
	r.advance(now)
	n := min(serving.Time(window)/width, buckets-1, r.newest)
	if n < 1 {
		if now <= 0 {
			return 0
		}
		return float64(r.counts[app][r.newest%buckets]) / (now - r.newest*width + 1).Seconds()
	}
	sum := int64(0)
	for k := r.newest - n; k < r.newest; k++ {
		sum += r.counts[app][k%buckets]
	}
	return float64(sum) / float64(n)
}
