package proteus

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// serveMost is called when out leaves out some of the demand. It finds the largest served parts and returns a local
// search for the best goal with them.
//
// The served parts are maximised first and by themselves. In one program with the accuracy, their gap would exceed all
// differences of accuracy. Classes go from the most important down, each to one served part for all its stages. Then
// every app that does not compete with the worst served one gets more: the worst served one may lack workers that are
// of no use to the others.
func (p *Planner) serveMost(ctx context.Context, m *problem, out *found, best *localSearch) (*localSearch, error) {
	out.proven, out.bound = false, math.Inf(1)
	for k := len(out.least) - 1; k >= 0; k-- {
		if out.least[k] >= 1-servedTolerance {
			continue
		}
		if err := p.searchServed(ctx, m, m.byClass(out.allocation, k), out); err != nil {
			return nil, err
		}
	}
	if m.sheds(out.allocation) {
		if err := p.searchServed(ctx, m, m.byApps(out.allocation), out); err != nil {
			return nil, err
		}
	}
	fractions := m.fractions(out.allocation)
	if x := m.build(fractions); ctx.Err() == nil {
		s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{Relax: true})
		switch {
		case err == nil && s.Status == milp.Optimal:
			out.proven, out.bound, out.duals = true, s.Bound, m.dualsOf(x, s)
		case err != nil && ctx.Err() == nil:
			return nil, fmt.Errorf("planner proteus: %w", err)
		}
	}
	// Two searches, from the counts that carry most and from the most accurate ones. They end at different optima.
	c := m.newLocalSearch(ctx, out.counts, fractions)
	c.climb()
	best = m.newLocalSearch(ctx, best.counts, fractions)
	if best.climb(); c.objective() >= best.objective() {
		best = c
	}
	return best, nil
}

// searchServed looks for an allocation that serves more than out has, to within half the gap of the most.
func (p *Planner) searchServed(ctx context.Context, m *problem, shares []servedTogether, out *found) error {
	x, fastest := m.servedProgram(shares)
	s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{
		AbsoluteGap: m.o.Gap / 2, Nodes: m.o.Nodes, Start: m.servedPoint(x, fastest, shares, out.counts),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // out of time: what was found so far is a plan
	case err != nil:
		return fmt.Errorf("planner proteus: %w", err)
	case s.Status != milp.Optimal && s.Status != milp.Feasible:
		return nil
	}
	counts := make([]int, len(m.pairs))
	for n, k := range fastest {
		counts[k] = int(s.Values[x.workers[n]])
	}
	if a := m.rate(counts, 1); a.better(out.allocation) {
		out.allocation = a
	}
	return nil
}

// servedTogether is stages that are served to one part. They may leave up to maxUnserved of their demand out, at a
// cost.
type servedTogether struct {
	stages            []int
	cost, maxUnserved float64
}

// byClass returns the stages that are served together to serve as much of class k as possible. The more important
// classes keep what an allocation gives them; the less important ones may get anything.
func (m *problem) byClass(a *allocation, k int) []servedTogether {
	var out []servedTogether
	for n, c := range m.classes() {
		x := servedTogether{stages: c.stages, maxUnserved: 1}
		if n == k {
			x.cost = 1
		}
		if n > k {
			x.maxUnserved = maxUnserved(a.least[n])
		}
		out = append(out, x)
	}
	return out
}

// byApps returns the stages that are served together to serve as many queries as possible, weighed by importance, while
// every class keeps what an allocation gives it.
func (m *problem) byApps(a *allocation) []servedTogether {
	out, all := make([]servedTogether, len(m.spec.Apps)), 0.0
	for n := range out {
		out[n].cost = m.queries(serving.AppID(n))
		all += out[n].cost
	}
	for n := range out {
		out[n].cost /= all
	}
	for k, c := range m.classes() {
		for _, s := range c.stages {
			x := &out[m.stages[s].App]
			x.stages, x.maxUnserved = append(x.stages, s), maxUnserved(a.least[k])
		}
	}
	return out
}

// maxUnserved leaves room for the solver's rounding.
func maxUnserved(least float64) float64 { return 1 - least*(1-1e-9) }

// servedProgram is the program that maximises the served parts, whatever the accuracy. Of a stage's pairs in a group
// only the fastest matters, and rates need no columns. fastest is by index in workers the pair.
func (m *problem) servedProgram(shares []servedTogether) (x *program, fastest []int) {
	x = &program{smallest: -1}
	x.Maximize = true
	for _, c := range shares {
		x.unserved = append(x.unserved, x.Column(milp.Column{Objective: -c.cost, Upper: c.maxUnserved}))
	}
	counts := make([][]milp.Term, len(m.groups))
	carried := make([][]milp.Term, len(m.stages))
	for s := range m.stages {
		pairs, _ := m.fastest(s)
		for _, best := range pairs {
			g := m.pairs[best].group
			n := x.Column(milp.Column{Upper: float64(len(m.groups[g].workers)), Integer: true})
			x.workers, fastest = append(x.workers, n), append(fastest, best)
			counts[g] = append(counts[g], milp.Term{Column: n, Coef: 1})
			carried[s] = append(carried[s], milp.Term{Column: n, Coef: min(m.pairs[best].rate/m.stages[s].demand, 1)})
		}
	}
	for g := range m.groups {
		if len(counts[g]) > 0 {
			x.Row(-milp.Inf, float64(len(m.groups[g].workers)), counts[g]...)
		}
	}
	for k, c := range shares {
		for _, s := range c.stages {
			x.Row(1, milp.Inf, append(carried[s], milp.Term{Column: x.unserved[k], Coef: 1})...)
		}
	}
	return x, fastest
}

// servedPoint returns counts as a point of servedProgram.
func (m *problem) servedPoint(x *program, fastest []int, shares []servedTogether, counts []int) []float64 {
	out := make([]float64, len(x.Columns))
	able := make([]float64, len(m.stages)) // of the demand
	for n, k := range fastest {
		p := &m.pairs[k]
		for _, o := range m.stages[p.stage].pairs {
			if m.pairs[o].group == p.group {
				out[x.workers[n]] += float64(counts[o])
			}
		}
		able[p.stage] += out[x.workers[n]] * min(p.rate/m.stages[p.stage].demand, 1)
	}
	for k, c := range shares {
		for _, s := range c.stages {
			out[x.unserved[k]] = max(out[x.unserved[k]], 1-able[s])
		}
	}
	return out
}
