// Package interp evaluates a function that is known at a few points.
package interp

import "sort"

// Linear returns the value at x of the piecewise linear function through the points (xs[i], ys[i]). xs must be strictly
// increasing, as long as ys, and not empty. Before the first point the first value holds. Beyond the last point the
// last segment continues, with a slope of at least zero, as latencies do; a single point is continued in proportion to
// x. measured reports whether x is one of xs.
func Linear(xs, ys []float64, x float64) (y float64, measured bool) {
	n := len(xs)
	i := sort.SearchFloat64s(xs, x)
	switch {
	case i < n && xs[i] == x:
		return ys[i], true
	case i == 0:
		return ys[0], false
	case i < n:
		f := (x - xs[i-1]) / (xs[i] - xs[i-1])
		return ys[i-1] + f*(ys[i]-ys[i-1]), false
	case n == 1:
		// One point says nothing about the slope: proportional growth is the cautious guess.
		return ys[0] * x / xs[0], false
	}
	slope := (ys[n-1] - ys[n-2]) / (xs[n-1] - xs[n-2])
	return ys[n-1] + max(slope, 0)*(x-xs[n-1]), false
}
