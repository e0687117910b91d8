package profile

import (
	"math"
	"math/bits"
	"slices"
)

// noteRatio notes the ratio of an observed time to the believed one. It returns the factor by which the machine has
// changed. That is 1 unless most of the recent ratios lie on one side of 1, further away than the usual deviation.
func (o *observed) noteRatio(ratio float64) float64 {
	x := math.Log(ratio)
	copy(o.logs[1:], o.logs[:recentRatios-1])
	o.logs[0] = x
	o.deviation += (min(math.Abs(x), maxDeviation) - o.deviation) / deviationSpan
	o.above, o.below = o.above<<1, o.below<<1
	switch {
	case x > minLogRatio:
		o.above |= 1
	case x < -minLogRatio:
		o.below |= 1
	}
	if bits.OnesCount16(o.above) < changedMajority && bits.OnesCount16(o.below) < changedMajority {
		return 1
	}
	sorted := o.logs
	slices.Sort(sorted[:])
	if by := sorted[recentRatios/2]; math.Abs(by) > max(minLogRatio, 2*o.deviation) {
		return math.Exp(by)
	}
	return 1
}

// rescale multiplies the remembered times of every size by a factor, since the machine has changed.
func (o *observed) rescale(by float64) {
	o.above, o.below = 0, 0
	for k, r := range o.rings {
		if r == nil {
			continue
		}
		// A size that was already observed on the changed machine is scaled by less.
		scale := by
		if o.table != nil {
			scale = by * float64(o.table[k]) / r.median
		}
		if (scale > 1) != (by > 1) {
			continue
		}
		for i := range r.took {
			r.took[i] = min(r.took[i]*scale, maxBelieved)
		}
		r.updateMedian()
	}
}
