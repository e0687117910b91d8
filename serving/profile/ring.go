package profile

// ring is the last observations of one class of sizes, in nanoseconds.
type ring struct {
	took   [ringSize]float64
	n      uint32
	median float64
}

func (r *ring) add(took float64) {
	r.took[r.n%ringSize] = took
	// Rings that are read round lose no count: n stays congruent when it is cut down.
	if r.n++; r.n >= 1<<30 {
		r.n = ringSize + r.n%ringSize
	}
	r.updateMedian()
}

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
