package proteus

import (
	"math"
	"slices"
)

const (
	// kicks is how often a search that has come to rest is disturbed. At the limit of a fleet of 40 the best known
	// counts are reached within 50.
	perturbations = 64
	// kicked is how many workers a kick moves: two give back what they took, many cost as much as a new start.
	perturbedWorkers = 4
)

// kick disturbs a search that has come to rest and climbs again, over and over; what is worse is undone. It ends when
// enough says so of the worth that is reached, after so many kicks, or with ctx.
func (c *localSearch) perturb(enough func(worth float64) bool) {
	where := goldenSequence(0)
	best := c.objective()
	for range perturbations {
		if c.looksLeft <= 0 || enough(best) || c.ctx.Err() != nil {
			return
		}
		counts, free, at, changes := slices.Clone(c.counts), slices.Clone(c.free), slices.Clone(c.values),
			slices.Clone(c.changes)
		for range perturbedWorkers {
			c.moveWorker(&where)
		}
		c.climb()
		if w := c.objective(); w > best+minGain {
			best = w
		} else {
			c.counts, c.free, c.values, c.changes = counts, free, at, changes
		}
	}
}

// shove gives a worker another variant, of its own stage or any other.
func (c *localSearch) moveWorker(where *goldenSequence) {
	var hosted, other []int
	for k, n := range c.counts {
		if n > 0 {
			hosted = append(hosted, k)
		}
	}
	if len(hosted) == 0 {
		return
	}
	from := hosted[where.next(len(hosted))]
	for k := range c.m.pairs {
		if k != from && c.m.pairs[k].group == c.m.pairs[from].group {
			other = append(other, k)
		}
	}
	if len(other) == 0 {
		return
	}
	to := other[where.next(len(other))]
	c.counts[from]--
	c.counts[to]++
	c.evaluate(int(c.m.pairs[from].stage))
	c.evaluate(int(c.m.pairs[to].stage))
}

// spread walks the numbers below 1 in steps of the golden ratio, which leave no large gap for long: a plan is a
// function of its request, so its kicks are not left to chance.
type goldenSequence float64

// next is a number below n.
func (x *goldenSequence) next(n int) int {
	_, f := math.Modf(float64(*x) + 1/math.Phi)
	*x = goldenSequence(f)
	return min(int(f*float64(n)), n-1)
}
