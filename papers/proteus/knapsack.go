package proteus

import (
	"cmp"
	"math"
	"slices"
)

// knapsack is the pricing problem of one stage: workers of its pairs must carry its target, such that the value of the
// served items less the workers' prices is largest. The last worker may serve less than it carries. A branch-and-bound
// search with a limit on nodes solves it; its bound covers the branches that it does not visit.
type knapsack struct {
	items []item  // by falling density
	left  []int   // by group, workers that may still be taken
	taken []int   // by item
	base  float64 // value of kept workers that pay for themselves
	slack float64 // below the best, what is still of interest
	// nodes that the search may still visit
	nodes  int
	pieces []piece // working memory of bound

	best, upper float64
	// called for every solution within slack of the best so far; taken is reused
	visitSolution func(taken []int, value float64)
}

// item is workers of one pair that are worth the same.
type item struct {
	pair, group, max int
	rate             float64 // items/s of a worker
	reward           float64 // of an item/s served
	cost             float64 // of a worker
	density          float64 // of an item/s served by a worker without spare time
	kept             bool    // all of them are taken from the beginning
}

// solve searches for the best way to serve target.
func (f *knapsack) solve(target float64) {
	f.best, f.upper = math.Inf(-1), math.Inf(-1)
	for i := range f.items {
		x := &f.items[i]
		if x.cost <= 0 && x.max > 0 && x.kept {
			f.base -= x.cost * float64(x.max)
			x.cost = 0
			f.left[x.group] -= x.max
		} else {
			x.kept = false
			x.cost = max(x.cost, 0)
		}
		x.density = x.reward - x.cost/x.rate
	}
	slices.SortStableFunc(f.items, func(a, b item) int { return cmp.Compare(b.density, a.density) })
	f.taken = make([]int, len(f.items))
	f.branch(0, target, 1e-10*target, f.base, true)
	f.upper = max(f.upper, f.best)
}

// room returns how many more workers of an item may be taken.
func (f *knapsack) room(i int) int {
	x := &f.items[i]
	if x.kept {
		return x.max - f.taken[i]
	}
	return min(x.max-f.taken[i], f.left[x.group])
}

func (f *knapsack) take(i, n int) {
	f.taken[i] += n
	if x := &f.items[i]; !x.kept {
		f.left[x.group] -= n
	}
}

// branch decides how many workers of the items from i on serve what is left, all but one of them in full. A left below
// dust counts as nothing. fresh says that the counts of the items before i have changed since the last worker was
// tried.
func (f *knapsack) branch(i int, left, dust, value float64, fresh bool) {
	if left <= dust {
		f.record(value)
		return
	}
	if fresh {
		for t := range f.items {
			x := &f.items[t]
			if v := value + x.reward*left - x.cost; x.rate >= left && v > f.best-f.slack && f.room(t) > 0 {
				f.take(t, 1)
				f.record(v)
				f.take(t, -1)
			}
		}
	}
	if i == len(f.items) {
		return
	}
	x := &f.items[i]
	fits := min(f.room(i), int(left/x.rate+1e-12))
	for n := fits; n >= 0; n-- {
		f.nodes--
		f.take(i, n)
		rest, now := left-float64(n)*x.rate, value+float64(n)*(x.reward*x.rate-x.cost)
		bound := now + f.bound(i+1, rest)
		if bound <= f.best-f.slack || f.nodes < 0 {
			f.upper = max(f.upper, bound)
		} else {
			f.branch(i+1, rest, dust, now, n > 0)
		}
		f.take(i, -n)
	}
}

func (f *knapsack) record(value float64) {
	if value > f.best-f.slack {
		f.visitSolution(f.taken, value)
	}
	f.best = max(f.best, value)
}

// piece is so many items/s served at one density.
type piece struct{ rate, density float64 }

// bound returns an upper bound on the value of serving what is left with the items from i on and one worker of the
// items before, not in full: the densest items first, and that worker instead of the last of them.
func (f *knapsack) bound(i int, left float64) float64 {
	value, rest := 0.0, left
	f.pieces = f.pieces[:0]
	for j := i; j < len(f.items) && rest > 0; j++ {
		x := &f.items[j]
		if able := min(float64(f.room(j))*x.rate, rest); able > 0 {
			value += able * x.density
			rest -= able
			f.pieces = append(f.pieces, piece{able, x.density})
		}
	}
	more := math.Inf(-1)
	if rest <= 0 {
		more = 0
	}
	for t := range f.items[:i] {
		x := &f.items[t]
		able := min(x.rate, left) - rest
		if able < 0 || f.room(t) <= 0 {
			continue
		}
		v := x.reward*rest - x.cost
		for n := len(f.pieces) - 1; n >= 0 && able > 0 && f.pieces[n].density < x.reward; n-- {
			r := min(able, f.pieces[n].rate)
			v += r * (x.reward - f.pieces[n].density)
			able -= r
		}
		more = max(more, v)
	}
	return value + more
}
