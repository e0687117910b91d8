package profile

// ring is the last observations of one size class, in nanoseconds.
type ring struct {
	took [ringSize]float64
	// observations so far; the newest is at (n-1) mod ringSize
	n      uint32
	median float64
}

// add replaces the oldest observation.
func (r *ring) add(took float64) {
	r.took[r.n%ringSize] = took
	// n is cut down before it overflows, to a number that is congruent to it.
	if r.n++; r.n >= 1<<30 {
		r.n = ringSize + r.n%ringSize
	}
	r.updateMedian()
}

// updateMedian computes the median by insertion sort: there are few observations.
func (r *ring) updateMedian() {
	var sorted [ringSize]float64
	n := copy(sorted[:], r.took[:min(r.n, ringSize)])
	for i := 1; i < n; i++ {
		x, j := sorted[i], i
		for ; j > 0 && sorted[j-1] > x; j-- {
			sorted[j] = sorted[j-1]
		}
		sorted[j] = x
	}
	r.median = (sorted[(n-1)/2] + sorted[n/2]) / 2
}
