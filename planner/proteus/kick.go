package proteus

import (
	"math"
	"slices"
)

const (
	// kicks is how often a search that has come to rest is disturbed. At the limit of a fleet of 40 the best known
	// counts are reached within 50.
	kicks = 64
	// kicked is how many workers a kick moves: two give back what they took, many cost as much as a new start.
	kicked = 4
)

// kick disturbs a search that has come to rest and climbs again, over and over; what is worse is undone. It ends when
// enough says so of the worth that is reached, after so many kicks, or with ctx.
func (c *climb) kick(enough func(worth float64) bool) {
	where := spread(0)
	best := c.worth()
	for range kicks {
		if c.left <= 0 || enough(best) || c.ctx.Err() != nil {
			return
		}
		counts, free, at, changes := slices.Clone(c.counts), slices.Clone(c.free), slices.Clone(c.at),
			slices.Clone(c.changes)
		for range kicked {
			c.shove(&where)
		}
		c.up()
		if w := c.worth(); w > best+worthwhile {
			best = w
		} else {
			c.counts, c.free, c.at, c.changes = counts, free, at, changes
		}
	}
}

// shove gives a worker another variant, of its own stage or any other.
func (c *climb) shove(where *spread) {
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
	c.look(int(c.m.pairs[from].stage))
	c.look(int(c.m.pairs[to].stage))
}

// spread walks the numbers below 1 in steps of the golden ratio, which leave no large gap for long: a plan is a
// function of its request, so its kicks are not left to chance.
type spread float64

// next is a number below n.
func (x *spread) next(n int) int {
	_, f := math.Modf(float64(*x) + 1/math.Phi)
	*x = spread(f)
	return min(int(f*float64(n)), n-1)
}
