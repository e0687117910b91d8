package packing

import (
	"cmp"
	"math"
	"slices"
)

// weights are the prices of a free thread and of a free per cent of an accelerator. All free threads and per cents of a
// cluster together cost 1.
type weights struct{ thread, percent float64 }

// of returns the price of an instance of a configuration.
func (w weights) of(c *Configuration) float64 {
	return w.thread*float64(c.Threads) + w.percent*float64(c.Percent)
}

// dualWeights returns the weights by which the loads make threads and accelerators scarce, and the multiple of the
// loads that they prove to be the most that fits.
//
// At any weights nothing serves a query of a function for less than its cheapest configuration, so the cluster carries
// at most 1 / sum(load * cheapest) of the loads. The least such bound is that of CapacityBound, by the duality of
// linear programs, and every configuration in its optimum is a cheapest one there. The bound is a linear function over
// a concave one, so it has one minimum, and ternary search finds it.
func dualWeights(c *Cluster, functions []*Function) (best weights, bound float64) {
	threads, percent := 0, 0
	for s := range c.Servers {
		threads += c.Servers[s].Threads
		for _, p := range c.Servers[s].Percents {
			percent += p
		}
	}
	at := func(part float64) weights {
		return weights{part / max(float64(threads), 1), (1 - part) / max(float64(percent), 1)}
	}
	of := func(w weights) float64 {
		takes := 0.0
		for _, f := range functions {
			least := math.Inf(1)
			for _, n := range f.undominated {
				y := &f.Configurations[n]
				least = min(least, w.of(y)/y.Up)
			}
			if left := f.Load - f.rate; left > 0 && !math.IsInf(least, 1) {
				takes += left * least
			}
		}
		return 1 / takes
	}
	low, high := 0.0, 1.0
	if percent == 0 {
		low = 1
	}
	for high-low > 1e-3 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if of(at(a)) <= of(at(b)) {
			high = b
		} else {
			low = a
		}
	}
	// Neither ever has price 0, since the next function may need it.
	part := min(max((low+high)/2, minShare), 1-minShare)
	return at(part), of(at((low + high) / 2))
}

// undominated lists the configurations that may be the cheapest at some weights: no other takes as few threads and as
// few per cents for what it serves.
func undominated(all []Configuration) (out []int) {
	order := make([]int, 0, len(all))
	for k := range all {
		if !all[k].Whole {
			order = append(order, k)
		}
	}
	threads := func(k int) float64 { return float64(all[k].Threads) / all[k].Up }
	percent := func(k int) float64 { return float64(all[k].Percent) / all[k].Up }
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(threads(a), threads(b)), cmp.Compare(percent(a), percent(b)), a-b)
	})
	least := math.Inf(1)
	for _, k := range order {
		if p := percent(k); p < least {
			out, least = append(out, k), p
		}
	}
	return out
}

// minShare is the least part of the price that all threads, or all accelerators, have together.
const minShare = 0.02

// packable is the part of the free resources that loads may take before the resource counts as scarce. Not all of it
// can be packed.
const packable = 0.9

// scarcityWeights returns the weights at which the cheapest configurations of the unserved load fit, and of these those
// nearest to beta's. They lie between beta's weights and those of dualWeights. scarce reports whether they differ from
// beta's.
func scarcityWeights(c *Cluster, functions []*Function) (w weights, scarce bool) {
	threads, percent := 0.0, 0.0
	for s := range c.Servers {
		threads += float64(c.Servers[s].Threads)
		for _, p := range c.Servers[s].Percents {
			percent += float64(p)
		}
	}
	at := func(part float64) weights {
		return weights{part / max(threads, 1), (1 - part) / max(percent, 1)}
	}
	// over returns by how much the cheapest configurations exceed the threads and the per cents there are.
	over := func(w weights) (float64, float64) {
		t, p := 0.0, 0.0
		for _, f := range functions {
			best, least := -1, math.Inf(1)
			for _, n := range f.undominated {
				if e := w.of(&f.Configurations[n]) / f.Configurations[n].Up; e < least {
					best, least = n, e
				}
			}
			if left := f.Load - f.rate; left > 0 && best >= 0 {
				y := &f.Configurations[best]
				t += left / y.Up * float64(y.Threads)
				p += left / y.Up * float64(y.Percent)
			}
		}
		return t - packable*threads, p - packable*percent
	}
	beta := c.space.beta
	from := beta * threads / max(beta*threads+percent, 1)
	t, p := over(at(from))
	if t <= 0 && p <= 0 {
		return at(from), false
	}
	best, _ := dualWeights(c, functions)
	to := best.thread * max(threads, 1)
	// Towards the dual weights less and less is used of the resource that is scarce at beta's weights. Bisection finds
	// the first point that saves enough.
	byThreads := t > 0
	for range 12 {
		middle := (from + to) / 2
		t, p := over(at(middle))
		if byThreads && t > 0 || !byThreads && p > 0 {
			from = middle
		} else {
			to = middle
		}
	}
	return at(to), true
}
