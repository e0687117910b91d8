package proteus

import (
	"context"
	"math"
	"slices"
)

// localSearch is a local search over counts. A step changes one stage or two: each gives up at most one worker of one
// group and gets at most one of another, together with the best swap of variants among its own workers. The objective
// is a sum over stages, for fair goals plus a minimum over them, and the value of a change depends on its stage alone.
// So values are tabulated, and after a step only the stages that took part are evaluated again: the cost of a step does
// not grow with the fleet.
type localSearch struct {
	ctx            context.Context // ends it, between two evaluations of a stage
	m              *problem
	mean, smallest float64 // weights of the mean and the smallest accuracy in the goal
	// items/s by stage
	target     []float64
	total      float64   // sum of weight times target
	shedCost   []float64 // by stage, of leaving out all of its target
	running    []int     // by pair, the workers that run it
	keepReward float64   // for each worker that keeps what it runs
	groups     [][]int   // by stage, the groups that can serve it, and none

	counts          []int        // by pair
	free            []int        // workers by group
	values          []stageValue // by stage
	changes         [][]change   // by stage
	evaluationsLeft int          // evaluations that the search may still take
}

// stageValue is the value of a stage's workers.
type stageValue struct {
	// its part of the sum: accuracy and the reward for kept workers, less the cost of what is left out
	value    float64
	accuracy float64 // normalised; what is left out counts as 0
}

// change is the best way for a stage to give up a worker of group less and get one of group more; either may be none.
type change struct {
	less, more int
	swaps      [2]swap
	stageValue
}

// swap is a worker that goes from one pair to another. none on either side is a worker that leaves the stage or joins
// it.
type swap struct{ from, to int }

const (
	none = -1
	// minGain is the least gain of a step, so that rounding errors cannot cause an endless loop.
	minGain = 1e-9
	// maxEvaluations bounds a search to some seconds. In fleets of a few device types no search comes near it.
	maxEvaluations = 20_000_000
)

// newLocalSearch begins a search at counts, by pair. It aims to serve the given fractions, by stage, of the demand; nil
// means all of it. Steps that serve more of it are preferred.
func (m *problem) newLocalSearch(ctx context.Context, counts []int, fractions []float64) *localSearch {
	c := &localSearch{
		ctx: ctx, m: m, counts: append([]int(nil), counts...), free: make([]int, len(m.groups)),
		evaluationsLeft: maxEvaluations,
		target:          make([]float64, len(m.stages)), shedCost: make([]float64, len(m.stages)),
		groups: make([][]int, len(m.stages)),
		values: make([]stageValue, len(m.stages)), changes: make([][]change, len(m.stages)),
	}
	c.mean, c.smallest = m.goal()
	for g := range m.groups {
		c.free[g] = len(m.groups[g].workers)
	}
	for k, n := range counts {
		c.free[m.pairs[k].group] -= n
	}
	price := float64(shedCost)
	for _, x := range m.classes() {
		for _, s := range x.stages {
			c.shedCost[s] = price
		}
		price = min(price*shedCost, maxShedCost)
	}
	for s := range m.stages {
		st := &m.stages[s]
		c.target[s] = st.demand
		if fractions != nil {
			c.target[s] *= fractions[s]
		}
		c.total += st.weight * c.target[s]
		c.groups[s] = []int{none}
		for _, k := range st.pairs {
			if g := m.pairs[k].group; !slices.Contains(c.groups[s], g) {
				c.groups[s] = append(c.groups[s], g)
			}
		}
	}
	c.running, c.keepReward = m.keepRewards()
	for s := range m.stages {
		c.evaluate(s)
	}
	return c
}

// setKeepReward changes the reward for kept workers.
func (c *localSearch) setKeepReward(keep float64) {
	c.keepReward = keep
	for s := range c.values {
		c.evaluate(s)
	}
}

// climb takes steps until none gains.
func (c *localSearch) climb() {
	for c.evaluationsLeft > 0 && c.ctx.Err() == nil && c.step() {
	}
}

// objective returns the value of the counts: that of the goal, with rewards and costs.
func (c *localSearch) objective() float64 {
	sum, smallest := 0.0, math.Inf(1)
	for _, x := range c.values {
		sum += x.value
		smallest = min(smallest, x.accuracy)
	}
	return c.mean*sum + c.smallest*smallest
}

// stageValue computes the value of a stage's counts.
func (c *localSearch) stageValue(s int) (out stageValue) {
	st := &c.m.stages[s]
	c.evaluationsLeft--
	left, sum := c.target[s], 0.0
	for _, k := range st.pairs {
		if n := c.counts[k]; n > 0 {
			p := &c.m.pairs[k]
			r := min(left, float64(n)*p.rate)
			sum += r * p.accuracy
			left -= r
			if c.keepReward > 0 {
				out.value += c.keepReward * float64(min(n, c.running[k]))
			}
		}
	}
	out.accuracy = 1
	if c.target[s] > 0 {
		out.value += st.weight * sum / c.total
		out.accuracy = sum / c.target[s]
		if lack := left / c.target[s]; lack > minGain {
			// The square makes one stage that lacks everything worse than two that lack half.
			out.value -= c.shedCost[s] * lack * (1 + lack)
		}
	}
	return out
}

// evaluate tabulates the value of a stage and of all its changes.
func (c *localSearch) evaluate(s int) {
	c.values[s] = c.stageValue(s)
	var all []change
	for _, less := range c.groups[s] {
		for _, more := range c.groups[s] {
			if x, ok := c.bestChange(s, less, more); ok {
				all = append(all, x)
			}
		}
	}
	c.changes[s] = all
}

// bestChange finds the best swaps for one change: it tries every worker that can leave, every pair that can be added,
// and every swap of another worker besides.
func (c *localSearch) bestChange(s, less, more int) (out change, ok bool) {
	pairs := c.m.stages[s].pairs
	out.value = math.Inf(-1)
	try := func(a, b swap) {
		if v := c.stageValue(s); v.value > out.value {
			out, ok = change{less: less, more: more, swaps: [2]swap{a, b}, stageValue: v}, true
		}
	}
	of := func(group int, hosted bool, do func(k int)) {
		if group == none {
			do(none)
			return
		}
		for _, k := range pairs {
			if c.m.pairs[k].group == group && (!hosted || c.counts[k] > 0) {
				do(k)
			}
		}
	}
	of(less, true, func(from int) {
		c.add(from, -1)
		of(more, false, func(to int) {
			if to == from && to != none {
				return
			}
			c.add(to, 1)
			if from != none || to != none {
				try(swap{from, to}, swap{none, none})
			}
			for _, x := range pairs {
				if c.counts[x] == 0 || x == to {
					continue
				}
				c.counts[x]--
				for _, y := range pairs {
					if y != x && y != from && c.m.pairs[y].group == c.m.pairs[x].group {
						c.counts[y]++
						try(swap{from, to}, swap{x, y})
						c.counts[y]--
					}
				}
				c.counts[x]++
			}
			c.add(to, -1)
		})
		c.add(from, 1)
	})
	return out, ok
}

func (c *localSearch) add(k, n int) {
	if k != none {
		c.counts[k] += n
	}
}

// step applies the best change of a stage, or of two stages together, and reports whether it gained.
func (c *localSearch) step() bool {
	best := minGain
	var x, y *change
	var a, b int
	for s := range c.changes {
		for i := range c.changes[s] {
			first := &c.changes[s][i]
			if c.feasible(first, nil) {
				if g := c.gain(s, first, none, nil); g > best {
					best, a, x, b, y = g, s, first, none, nil
				}
			}
			for t := s + 1; t < len(c.changes); t++ {
				for j := range c.changes[t] {
					second := &c.changes[t][j]
					// Without a smallest accuracy the sum of both gains is an upper bound.
					bound := c.mean * (first.value - c.values[s].value + second.value - c.values[t].value)
					if c.smallest == 0 && bound <= best || !c.feasible(first, second) {
						continue
					}
					if g := c.gain(s, first, t, second); g > best {
						best, a, x, b, y = g, s, first, t, second
					}
				}
			}
		}
	}
	if x == nil {
		return false
	}
	c.apply(x)
	c.evaluate(a)
	if y != nil {
		c.apply(y)
		c.evaluate(b)
	}
	return true
}

// feasible reports whether there are workers for two changes together; the second may be nil.
func (c *localSearch) feasible(x, y *change) bool {
	need := func(g int) bool {
		if g == none {
			return true
		}
		n := c.free[g]
		for _, z := range [2]*change{x, y} {
			if z != nil && z.more == g {
				n--
			}
			if z != nil && z.less == g {
				n++
			}
		}
		return n >= 0
	}
	return need(x.more) && (y == nil || need(y.more))
}

// gain returns what changing stage a, and b with it, adds to the objective.
func (c *localSearch) gain(a int, x *change, b int, y *change) float64 {
	g := x.value - c.values[a].value
	if y != nil {
		g += y.value - c.values[b].value
	}
	if c.smallest == 0 {
		return c.mean * g
	}
	before, after := math.Inf(1), math.Inf(1)
	for s := range c.values {
		now := c.values[s].accuracy
		before = min(before, now)
		switch s {
		case a:
			now = x.accuracy
		case b:
			now = y.accuracy
		}
		after = min(after, now)
	}
	return c.mean*g + c.smallest*(after-before)
}

// apply makes a change.
func (c *localSearch) apply(x *change) {
	if x.less != none {
		c.free[x.less]++
	}
	if x.more != none {
		c.free[x.more]--
	}
	for _, w := range x.swaps {
		c.add(w.from, -1)
		c.add(w.to, 1)
	}
}
