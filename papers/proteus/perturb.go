package proteus

import (
	"math"
	"slices"
)

// Iterated local search (Lourenço, Martin and Stützle 2003).
const (
	// perturbations is how often a local optimum is perturbed. At the limit of a fleet of 40 the best known counts are
	// reached within 50.
	perturbations = 64
	// perturbedWorkers is how many workers a perturbation moves: after two the search falls back to the same optimum,
	// after many it costs as much as a new start.
	perturbedWorkers = 4
)

// perturb perturbs the local optimum and climbs from there, repeatedly. It undoes a perturbation that ends in a worse
// optimum. It ends when done accepts the objective, after a number of perturbations, or with ctx.
func (c *localSearch) perturb(done func(objective float64) bool) {
	where := goldenSequence(0)
	best := c.objective()
	for range perturbations {
		if c.evaluationsLeft <= 0 || done(best) || c.ctx.Err() != nil {
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

// moveWorker gives a worker another variant, of its own stage or any other.
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

// goldenSequence walks through [0, 1) in steps of the golden ratio, which leave no large gap for long. A plan is a
// function of its request, so perturbations are not random.
type goldenSequence float64

// next returns a number below n.
func (x *goldenSequence) next(n int) int {
	_, f := math.Modf(float64(*x) + 1/math.Phi)
	*x = goldenSequence(f)
	return min(int(f*float64(n)), n-1)
}
