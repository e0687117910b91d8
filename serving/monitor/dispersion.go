package monitor

import "github.com/sluice-serving/sluice/serving"

const (
	// dispersionBuckets is over how many tenths of a second dispersion is measured at most: half a minute.
	dispersionBuckets = buckets - 1
	// leastBuckets and leastArrivals are what it takes to measure dispersion at all.
	leastBuckets, leastArrivals = 20, 50
)

// Dispersion returns the index of dispersion of an app's arrivals: the variance of the counts of tenths of a second
// over their mean, in the last half minute. It is about 1 for a Poisson process, 0 for even arrivals, and n for clumps
// of n queries that come by chance. The variance is taken from the differences of neighbouring counts (von Neumann
// 1941), so that a rate that rises or falls does not count as dispersion. It is 1 until two seconds and 50 queries have
// been seen.
func (r *View) Dispersion(now serving.Time, app serving.AppID) float64 {
	r.advance(now)
	n := min(r.newest, dispersionBuckets)
	if n < leastBuckets {
		return 1
	}
	var sum, squares float64
	for k := r.newest - n; k < r.newest; k++ {
		x := float64(r.counts[app][k%buckets])
		sum += x
		if k > r.newest-n {
			d := x - float64(r.counts[app][(k-1)%buckets])
			squares += d * d
		}
	}
	if sum < leastArrivals {
		return 1
	}
	return squares / 2 / float64(n-1) / (sum / float64(n))
}
