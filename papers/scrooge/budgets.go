package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// finish fills in what follows from the uses: cost, latency and budgets. The time that a path leaves of the objective
// is shared among its modules in proportion to their worst latencies. A module's budget is its worst latency times the
// objective over the longest path through it, so that no path exceeds the objective.
func (a *Allocation) finish(p *Problem, g *graph) error {
	worst, err := a.measure(p, g)
	if err != nil {
		return err
	}
	before, behind := dag.Around(g.next, worst)
	for i := range p.Modules {
		x := &a.Modules[i]
		x.Budget = worst[i]
		if through := before[i] + worst[i] + behind[i]; through < p.SLO && through > 0 {
			x.Budget = max(worst[i], time.Duration(float64(worst[i])*(float64(p.SLO)/float64(through))))
		}
	}
	for i := range p.Modules {
		x := &a.Modules[i]
		for _, n := range p.Modules[i].Next {
			a.Modules[n].Arrives = max(a.Modules[n].Arrives, x.Arrives+x.Budget)
		}
	}
	return nil
}

// measure computes cost and latency, and returns the worst latency of every module.
func (a *Allocation) measure(p *Problem, g *graph) (worst []time.Duration, err error) {
	worst = make([]time.Duration, len(p.Modules))
	a.Cost = 0
	for i := range p.Modules {
		cost, w, err := a.Modules[i].weigh(p, &p.Modules[i])
		if err != nil {
			return nil, err
		}
		worst[i] = w
		a.Cost += cost
	}
	_, a.Latency = g.longestPath(worst)
	return worst, nil
}

// uses returns the machines of a composition, without a remainder that is a rounding error.
func (m *module) uses(w composition) []Use {
	var out []Use
	for _, f := range w.full {
		out = append(out, Use{Mode: f.mode, Count: f.count, Rate: m.modes[f.mode].cap})
	}
	if w.remainderMode >= 0 {
		n := m.modes[w.remainderMode].machines(w.remainder)
		out = append(out, Use{Mode: w.remainderMode, Count: int(n), Rate: w.remainder / n})
	}
	return out
}
