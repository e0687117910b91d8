package infless

import (
	"cmp"
	"math"
	"slices"
)

// weights say what a thread and a per cent of an accelerator are worth of all that is left of a cluster: together its
// threads and per cents are worth 1.
type weights struct{ thread, percent float64 }

func (w weights) of(c *Configuration) float64 {
	return w.thread*float64(c.Threads) + w.percent*float64(c.Percent)
}

// balance weighs threads against per cent of accelerators by what loads make scarce of what is left. At any weights
// nothing serves a query of a function for less than its cheapest configuration takes, so that the cluster carries at
// most 1 / sum(load * cheapest) of the loads. The weights at which that is least are sought: by the duality of linear
// programs the bound is then that of Carries, and every configuration that its optimum uses is a cheapest one. What is
// bounded so has one valley, a linear function over a concave one, and so a third of the range can be given up at every
// look.
func dualWeights(c *cluster, functions []*function) (best weights, bound float64) {
	threads, percent := 0, 0
	for s := range c.servers {
		threads += c.servers[s].threads
		for _, p := range c.servers[s].percents {
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
				y := &f.configurations[n]
				least = min(least, w.of(y)/y.Up)
			}
			if left := f.load - f.rate; left > 0 && !math.IsInf(least, 1) {
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
	// Neither is ever free: somebody may want it next.
	part := min(max((low+high)/2, minShare), 1-minShare)
	return at(part), of(at((low + high) / 2))
}

// undominated lists the configurations that may be the cheapest at some weights: no other takes as little of both for
// what it serves.
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

// free is the least part of the worth that all threads, or all accelerators, have together.
const minShare = 0.02

// roomFor is the part of what is left that loads may take before it counts as scarce: not all of it can be packed.
const packable = 0.9

// weigh returns the weights at which the cheapest configurations of what is unserved take least by beta, and have room:
// beta's, or where threads or accelerators would not do the weights nearest to them at which they would, up to those of
// balance. scarce tells which of the two it was.
func scarcityWeights(c *cluster, functions []*function) (w weights, scarce bool) {
	threads, percent := 0.0, 0.0
	for s := range c.servers {
		threads += float64(c.servers[s].threads)
		for _, p := range c.servers[s].percents {
			percent += float64(p)
		}
	}
	at := func(part float64) weights {
		return weights{part / max(threads, 1), (1 - part) / max(percent, 1)}
	}
	// over tells how much more than there is room for the cheapest would take of threads and of accelerators.
	over := func(w weights) (float64, float64) {
		t, p := 0.0, 0.0
		for _, f := range functions {
			best, least := -1, math.Inf(1)
			for _, n := range f.undominated {
				if e := w.of(&f.configurations[n]) / f.configurations[n].Up; e < least {
					best, least = n, e
				}
			}
			if left := f.load - f.rate; left > 0 && best >= 0 {
				y := &f.configurations[best]
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
	// Towards the weights of balance more and more is saved of what is scarce at beta's: the first that saves enough.
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
