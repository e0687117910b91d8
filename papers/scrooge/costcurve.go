package scrooge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// point is a latency that can be kept at a cost in $/h.
type point struct {
	latency time.Duration
	cost    float64
}

// costCurve is the least cost as a function of the allowed latency: a step function. Latencies rise, costs fall. Below
// the first latency nothing is possible.
type costCurve []point

// costTolerance is the relative difference below which two costs are equal: sums of the same numbers in another order.
const costTolerance = 1e-12

// at returns the index of the step that holds at a latency, or -1.
func (c costCurve) at(within time.Duration) int {
	n, _ := slices.BinarySearchFunc(c, within, func(p point, d time.Duration) int {
		if p.latency <= d {
			return -1
		}
		return 1
	})
	return n - 1
}

// cost returns the least cost at a latency; +Inf where nothing is possible.
func (c costCurve) cost(within time.Duration) float64 {
	if k := c.at(within); k >= 0 {
		return c[k].cost
	}
	return math.Inf(1)
}

// beats reports whether a point would be part of the curve.
func (c costCurve) beats(p point) bool { return p.cost < c.cost(p.latency)*(1-costTolerance) }

// cut returns the part of the curve up to a latency.
func (c costCurve) cut(within time.Duration) costCurve { return c[:c.at(within)+1] }

// stepPair is the steps of two curves that a point of their combination came from.
type stepPair struct{ a, b int32 }

// inSeries combines the curves of two parts that follow each other, up to a latency and as far as o keeps points. from
// says where the points come from.
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

// inParallel combines the curves of two parts that each have the whole time, and says where the points come from.
func inParallel(a, b costCurve) (costCurve, []stepPair) {
	var out costCurve
	var from []stepPair
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		out = append(out, point{max(a[i].latency, b[j].latency), a[i].cost + b[j].cost})
		from = append(from, stepPair{int32(i), int32(j)})
		// The next point is where one of the curves steps next.
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

// dropDuplicates leaves the last, and so cheapest, of the points at each latency.
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
