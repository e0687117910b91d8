package poolsearch

import (
	"fmt"
	"math"
)

// HillClimb searches the integers of an interval. It moves by a step as long as the value grows, then halves the step.
// It finds the peak of values that rise to one peak and fall behind it. DeepRecSys finds its threshold of sizes by hill
// climbing too, with a fixed step; halving needs a number of evaluations that is logarithmic in the interval.
type HillClimb struct {
	low, high int
	step      int
	direction int // the side that is tried first, 1 or -1: the last successful one
	at        int
	best      int
	known     map[int]float64
	asked     bool
	next      int
}

// NewHillClimb returns a search of low..high that begins at from with the given step (>= 1). It fails when from is
// outside.
func NewHillClimb(low, high, from, step int) (*HillClimb, error) {
	if from < low || from > high {
		return nil, fmt.Errorf("poolsearch: a climb from %d in %d..%d: begin inside", from, low, high)
	}
	if step < 1 {
		return nil, fmt.Errorf("poolsearch: a climb by steps of %d: they must be at least 1", step)
	}
	return &HillClimb{
		low: low, high: high, step: step, direction: 1, at: from, best: from, known: make(map[int]float64),
	}, nil
}

// Next returns the point to be evaluated, the same one until Tell is called. ok is false at a peak: the search has
// ended.
func (c *HillClimb) Next() (x int, ok bool) {
	if c.asked {
		return c.next, true
	}
	here, known := c.known[c.at]
	if !known {
		return c.ask(c.at)
	}
	for c.step > 0 {
		moved := false
		for _, side := range [2]int{c.direction, -c.direction} {
			to := min(max(c.at+side*c.step, c.low), c.high)
			v, known := c.known[to]
			if !known {
				return c.ask(to)
			}
			if v > here {
				c.at, c.direction, here, moved = to, side, v, true
				break
			}
		}
		if !moved {
			c.step /= 2
		}
	}
	return 0, false
}

func (c *HillClimb) ask(x int) (int, bool) {
	c.asked, c.next = true, x
	return x, true
}

// Tell passes the value of the point that Next returned. It panics when Next has not been called since the last value.
// NaN is worse than every other value.
func (c *HillClimb) Tell(value float64) {
	if !c.asked {
		panic("poolsearch: Tell without a place that Next has named")
	}
	if math.IsNaN(value) {
		value = math.Inf(-1)
	}
	c.known[c.next], c.asked = value, false
	if value > c.known[c.best] {
		c.best = c.next
	}
}

// Best returns the point with the highest value so far, the first of equal ones; ok is false before the first value.
func (c *HillClimb) Best() (x int, value float64, ok bool) {
	value, ok = c.known[c.best]
	return c.best, value, ok
}
