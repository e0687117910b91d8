package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// proportionalBudgets divides the objective over the modules in proportion to the worst latency of their machines. The
// budgets of the allocation are those that its uses need; they leave some of the objective unused. Here each module's
// latency is stretched by the longest path through it, so every path adds up to the objective at most.
func (g *pipeline) proportionalBudgets(worst []time.Duration) []time.Duration {
	next := make([][]int, len(g.stages))
	for i := range next {
		next[i] = g.stages[i].next
	}
	before, behind := dag.Around(next, worst)
	out := make([]time.Duration, len(worst))
	for i := range out {
		if path := before[i] + worst[i] + behind[i]; path > 0 {
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
