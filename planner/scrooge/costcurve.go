package scrooge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// point is a way to keep a latency at a cost, in $/h.
type point struct {
	latency time.Duration
	cost    float64
}

// curve is the least cost as a function of the latency that is allowed: a step function. Latencies go up, costs down.
// Within less than the first latency nothing is possible.
type costCurve []point

// ties is the relative difference below which two costs are the same: sums of the same numbers in another order.
const costTolerance = 1e-12

// at is the index of the step that holds within so much, or -1.
func (c costCurve) at(within time.Duration) int {
	n, _ := slices.BinarySearchFunc(c, within, func(p point, d time.Duration) int {
		if p.latency <= d {
			return -1
		}
		return 1
	})
	return n - 1
}

// cost is the least within so much, +Inf where nothing is possible.
func (c costCurve) cost(within time.Duration) float64 {
	if k := c.at(within); k >= 0 {
		return c[k].cost
	}
	return math.Inf(1)
}

// beats tells whether a point would be part of the curve.
func (c costCurve) beats(p point) bool { return p.cost < c.cost(p.latency)*(1-costTolerance) }

// cut is the part of the curve that fits into so much.
func (c costCurve) cut(within time.Duration) costCurve { return c[:c.at(within)+1] }

// pair is the step of two parts that a point of both came from.
type stepPair struct{ a, b int32 }

// after is the curve of two parts of which one follows the other, as far as it fits into so much and is worth keeping,
// and where its points come from.
func inSeries(a, b costCurve, within time.Duration, o lagrangian) (costCurve, []stepPair) {
	type sum struct {
		point
		stepPair
	}
	var all []sum
	for i, p := range a {
		for j, q := range b {
			if p.latency+q.latency > within {
				break
			}
			if both := (point{p.latency + q.latency, p.cost + q.cost}); o.keeps(both) {
				all = append(all, sum{both, stepPair{int32(i), int32(j)}})
			}
		}
	}
	slices.SortFunc(all, func(x, y sum) int {
		return cmp.Or(cmp.Compare(x.latency, y.latency), cmp.Compare(x.cost, y.cost))
	})
	var out costCurve
	var from []stepPair
	for _, s := range all {
		if n := len(out); n == 0 || s.cost < out[n-1].cost*(1-costTolerance) {
			out, from = append(out, s.point), append(from, s.stepPair)
		}
	}
	return out, from
}

// beside is the curve of two parts of which each has the whole time, and where its points come from.
func inParallel(a, b costCurve) (costCurve, []stepPair) {
	var out costCurve
	var from []stepPair
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		out = append(out, point{max(a[i].latency, b[j].latency), a[i].cost + b[j].cost})
		from = append(from, stepPair{int32(i), int32(j)})
		// The next point is where the first of the two has its next step.
		switch {
		case i+1 == len(a):
			j++
		case j+1 == len(b):
			i++
		case a[i+1].latency < b[j+1].latency:
			i++
		case a[i+1].latency > b[j+1].latency:
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return dropDuplicates(out, from)
}

// tidy leaves one point of those at the same latency, the last and so the cheapest.
func dropDuplicates(c costCurve, from []stepPair) (costCurve, []stepPair) {
	n := 0
	for k := range c {
		if k+1 < len(c) && c[k+1].latency == c[k].latency {
			continue
		}
		c[n], from[n] = c[k], from[k]
		n++
	}
	return c[:n], from[:n]
}
