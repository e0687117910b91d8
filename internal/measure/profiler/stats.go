package profiler

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// confidence is the level of both confidence intervals.
const confidence = 0.95

// moments returns the mean and the sample standard deviation, by Welford's recurrence, which avoids cancellation.
func moments(samples []float64) (mean, stddev float64) {
	var m2 float64
	for i, x := range samples {
		d := x - mean
		mean += d / float64(i+1)
		m2 += d * (x - mean)
	}
	if len(samples) < 2 {
		return mean, 0
	}
	return mean, math.Sqrt(m2 / float64(len(samples)-1))
}

// meanWidth returns half the width of the confidence interval of the mean, relative to the mean (Student's t). It is
// +Inf while there are too few samples.
func meanWidth(n int, mean, stddev float64) float64 {
	switch {
	case n < 2:
		return math.Inf(1)
	case stddev == 0:
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(1 - (1-confidence)/2)
	return t * stddev / math.Sqrt(float64(n)) / mean
}

// quantileRanks returns ranks low <= high, counted from 1: the q-quantile of any continuous distribution lies between
// the low-th and the high-th smallest of n independent samples with at least the level of confidence. The number of
// samples below the quantile is binomial(n, q). ok is false while n is too small.
func quantileRanks(n int, q float64) (low, high int, ok bool) {
	tail := (1 - confidence) / 2
	b := distuv.Binomial{N: float64(n), P: q}
	// P(sample low > quantile) = P(B < low) = CDF(low-1); P(sample high < quantile) = P(B >= high) = 1 - CDF(high-1).
	sum := 0.0
	for k := 0; k < n; k++ {
		sum += b.Prob(float64(k))
		if sum <= tail {
			low = k + 1
		}
		if 1-sum <= tail {
			high = k + 1
			break
		}
	}
	return low, high, low > 0 && high > 0
}

// quantileWidth returns half the width of the confidence interval of the q-quantile, relative to its estimate. It is
// +Inf while there are too few samples. It assumes no distribution.
func quantileWidth(samples []float64, q float64) float64 {
	n := len(samples)
	low, high, ok := quantileRanks(n, q)
	if !ok {
		return math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(samples))
	spread := sorted[high-1] - sorted[low-1]
	if spread == 0 {
		return 0
	}
	at := min(max(int(math.Ceil(q*float64(n))), 1), n)
	return spread / 2 / sorted[at-1]
}
