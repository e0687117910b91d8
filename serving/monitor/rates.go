// Package monitor counts the demand seen: rates, sizes, factors of content. Time is passed in.
package monitor

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Buckets of a Rates and their width: half a minute of tenths of a second.
const (
	buckets = 320
	width   = serving.Time(100 * time.Millisecond)
	second  = serving.Time(time.Second) / width
)

// View reads the counts of a Rates. Its methods move windows on to the time given, and change nothing else. It is not
// safe for concurrent use.
type View struct {
	counts   [][buckets]int32
	missed   [][buckets]int32 // by the time at which that was clear
	newest   serving.Time     // number of the newest bucket
	answers  []answers        // by app
	recent   []recent         // by app
	sizes    []sizes          // by app
	declared []declared       // by app
	sorted   [2][]int32       // scratch memory
}

// Rates counts by app: arrivals in buckets of a tenth of a second over the last half minute, sizes of queries, and
// rates that clients declare. It adds up the accuracies of answers.
type Rates struct{ View }

// NewRates returns counters for n apps.
func NewRates(n int) *Rates {
	return &Rates{View{
		counts: make([][buckets]int32, n), missed: make([][buckets]int32, n),
		recent: make([]recent, n), sizes: make([]sizes, n), declared: make([]declared, n), answers: make([]answers, n),
	}}
}

// Grow takes up apps of which nothing was seen, in new places or in the place of others. It keeps all other counts.
func (r *Rates) Grow(fresh []serving.AppID) {
	r.counts, r.missed = serving.Cleared(r.counts, fresh), serving.Cleared(r.missed, fresh)
	r.recent, r.sizes = serving.Cleared(r.recent, fresh), serving.Cleared(r.sizes, fresh)
	r.declared, r.answers = serving.Cleared(r.declared, fresh), serving.Cleared(r.answers, fresh)
}

// Add counts one arrival.
func (r *Rates) Add(now serving.Time, app serving.AppID) {
	r.advance(now)
	r.counts[app][r.newest%buckets]++
	r.recent[app].add(now)
}

func (r *View) advance(now serving.Time) {
	b := now / width
	if b <= r.newest {
		return
	}
	for a := range r.counts {
		for k := max(r.newest+1, b-buckets+1); k <= b; k++ {
			r.counts[a][k%buckets], r.missed[a][k%buckets] = 0, 0
		}
	}
	r.newest = b
}

// Miss counts a query that was late, or not served.
func (r *Rates) Miss(now serving.Time, app serving.AppID) {
	r.advance(now)
	r.missed[app][r.newest%buckets]++
}

// Missed returns how many queries of an app in a second were late or not served over the last whole tenths of a second,
// at most window and at most half a minute; 0 within the first tenth.
func (r *View) Missed(now serving.Time, app serving.AppID, window time.Duration) float64 {
	r.advance(now)
	n := min(serving.Time(window)/width, buckets-1, r.newest)
	if n < 1 {
		return 0
	}
	return float64(counted(&r.missed[app], r.newest-n, r.newest)) / (n * width).Seconds()
}

// counted adds the counts of the buckets from <= k < to.
func counted(counts *[buckets]int32, from, to serving.Time) (n int64) {
	for k := from; k < to; k++ {
		n += int64(counts[k%buckets])
	}
	return n
}

// Rate returns the mean arrival rate of app in queries/s over the last whole tenths of a second: at most window, and at
// most half a minute. Within the first tenth it is over the time passed.
func (r *View) Rate(now serving.Time, app serving.AppID, window time.Duration) float64 {
	r.advance(now)
	n := min(serving.Time(window)/width, buckets-1, r.newest)
	if n < 1 {
		if now <= 0 {
			return 0
		}
		return float64(r.counts[app][r.newest%buckets]) / (now - r.newest*width + 1).Seconds()
	}
	return float64(counted(&r.counts[app], r.newest-n, r.newest)) / (n * width).Seconds()
}

// ewmaSeconds is how many seconds an EWMA covers, as in Proteus's controller.
const ewmaSeconds = 20

// EWMA returns the exponentially weighted mean of the rates of the last 20 whole seconds in queries/s. The second k
// before the newest has weight (1-a)^k, with a = 1/(1+com), divided by the sum of the weights. Proteus plans with a
// centre of mass com of 1.6 seconds. Within the first second it is Rate.
func (r *View) EWMA(now serving.Time, app serving.AppID, com float64) float64 {
	r.advance(now)
	keep := com / (1 + com)
	var sum, weights float64
	weight := 1.0
	for k := range serving.Time(ewmaSeconds) {
		to := r.newest - k*second
		if to < second {
			break
		}
		sum += weight * float64(counted(&r.counts[app], to-second, to))
		weights += weight
		weight *= keep
	}
	if weights == 0 {
		return r.Rate(now, app, time.Second)
	}
	return sum / weights
}
