package scrooge

import "time"

// proportionalBudgets divides the objective over the modules in proportion to the worst latency of their machines. The
// budgets of the allocation are those that its uses need; they leave some of the objective unused. Here each module's
// latency is stretched by the longest path through it, so every path adds up to the objective at most.
func (g *pipeline) proportionalBudgets(worst []time.Duration) []time.Duration {
	n := len(g.stages)
	// by module, the longest path to it and from its end
	before, after := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		for _, to := range g.stages[i].next {
			before[to] = max(before[to], before[i]+worst[i])
		}
	}
	for i := n - 1; i >= 0; i-- {
		for _, to := range g.stages[i].next {
			after[i] = max(after[i], worst[to]+after[to])
		}
	}
	out := make([]time.Duration, n)
	for i := range n {
		if path := before[i] + worst[i] + after[i]; path > 0 {
			out[i] = time.Duration(float64(worst[i]) / float64(path) * float64(g.budget))
		}
	}
	return out
}

// budgets returns the stages' parts of the objective of a pipeline.
func (c *candidate) budgets(g int) []time.Duration {
	worst := make([]time.Duration, len(c.request.pipelines[g].stages))
	for k := range c.packing.bins {
		for n := range c.packing.bins[k].pieces {
			if p := &c.packing.bins[k].pieces[n]; p.graph == g {
				worst[p.stage] = max(worst[p.stage], p.mode.WorstLatency(p.rate))
			}
		}
	}
	return c.request.pipelines[g].proportionalBudgets(worst)
}
