package scrooge

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// lagrangian bounds the cost of the remaining graph when a part of it takes a given time: at least base +
// slope*seconds. A point of the part whose total exceeds the best known cost need not be kept, which makes long chains
// fast.
//
// It is a Lagrangian bound: a second costs slope $/h, and the whole objective earns slope times its length. Parts in
// series all pay the same. Parts in parallel share the price in any way, since the whole takes as long as each of them.
type lagrangian struct {
	base, slope float64
	bestKnown   float64 // cost of the best known choice
}

// keeps reports whether a point may be part of a better choice.
func (o lagrangian) keeps(p point) bool {
	return p.cost+o.base+o.slope*p.latency.Seconds() < o.bestKnown*(1-costTolerance)
}

// keep returns the points of a curve that may be part of a better choice, and their indices.
func (o lagrangian) keep(c costCurve) (costCurve, []int) {
	var out costCurve
	var which []int
	for k, p := range c {
		if o.keeps(p) {
			out, which = append(out, p), append(which, k)
		}
	}
	return out, which
}

// of returns the bound for child k of the chain or the branches that o is for.
func (o lagrangian) of(t *dag.Tree, k int, curves []costCurve) lagrangian {
	slopes := splitSlope(t, o.slope, curves)
	for n, p := range t.Children {
		if n != k {
			o.base += relaxedCost(p, slopes[n], curves, nil)
		}
	}
	o.slope = slopes[k]
	return o
}

// first returns the bound for the first k children of a chain.
func (o lagrangian) first(t *dag.Tree, k int, curves []costCurve) lagrangian {
	for _, p := range t.Children[k:] {
		o.base += relaxedCost(p, o.slope, curves, nil)
	}
	return o
}

// relaxedCost returns the least cost of a tree when every second of it costs slope $/h more. Unless steps is nil, it
// gets the steps with that cost. Below branches it is a bound.
func relaxedCost(t *dag.Tree, slope float64, curves []costCurve, steps []int) float64 {
	switch t.Kind {
	case dag.Task:
		best, at := math.Inf(1), 0
		for k, p := range curves[t.Task] {
			if c := p.cost + slope*p.latency.Seconds(); c < best {
				best, at = c, k
			}
		}
		if steps != nil {
			steps[t.Task] = at
		}
		return best
	case dag.Chain, dag.Branches:
		sum := 0.0
		for n, s := range splitSlope(t, slope, curves) {
			sum += relaxedCost(t.Children[n], s, curves, steps)
		}
		return sum
	}
	return 0
}

// splitSlope returns the price of a second of each child when a second of the tree costs slope. Branches share it
// evenly, or one pays all of it, whichever gives the highest bound.
func splitSlope(t *dag.Tree, slope float64, curves []costCurve) []float64 {
	out := make([]float64, len(t.Children))
	if t.Kind == dag.Chain {
		for n := range out {
			out[n] = slope
		}
		return out
	}
	sum, even := 0.0, 0.0
	free, paid := make([]float64, len(out)), make([]float64, len(out))
	for n, p := range t.Children {
		free[n], paid[n] = relaxedCost(p, 0, curves, nil), relaxedCost(p, slope, curves, nil)
		sum += free[n]
		even += relaxedCost(p, slope/float64(len(out)), curves, nil)
	}
	payer, best := -1, even
	for n := range out {
		if b := sum - free[n] + paid[n]; b > best {
			payer, best = n, b
		}
	}
	for n := range out {
		switch payer {
		case -1:
			out[n] = slope / float64(len(out))
		case n:
			out[n] = slope
		}
	}
	return out
}

// bisectionSteps is the number of steps in the search for a price of time.
const bisectionSteps = 24

// bestSlope finds the price of a second with the highest bound on a tree within a latency. The bound is concave in the
// price, so ternary search finds it.
func bestSlope(t *dag.Tree, curves []costCurve, within time.Duration) (slope float64) {
	bound := func(s float64) float64 { return relaxedCost(t, s, curves, nil) - s*within.Seconds() }
	low, high := 0.0, 1.0
	for n := 0; n < bisectionSteps && bound(2*high) > bound(high); n++ {
		high *= 2
	}
	high *= 2
	for range bisectionSteps {
		a, b := low+(high-low)/3, high-(high-low)/3
		if bound(a) < bound(b) {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}
