package scrooge

import "context"

// Exact finds the least cost (ours, for the two programs of §3.3). The cost curve of every module is exact over what is
// searched (see module), and so is the division of the objective over the graph. The error is *Infeasible where nothing
// keeps the objective.
//
// Proven is false only where a search was cut short; Bound then says how much cheaper an allocation might be.
func Exact(p *Problem) (*Allocation, error) {
	g, err := p.checked()
	if err != nil {
		return nil, err
	}
	modules := make([]*module, len(p.Modules))
	curves, lower := make([]costCurve, len(p.Modules)), make([]costCurve, len(p.Modules))
	complete := true
	for i := range modules {
		m := p.module(i)
		m.frontier(p.SLO, maxCurveWork)
		modules[i], curves[i], lower[i] = m, m.curve, m.lower
		complete = complete && m.complete
	}
	steps, _, bound := g.leastCost(curves, p.SLO, maxNodes)
	if steps == nil {
		return nil, p.infeasible(g)
	}
	a := &Allocation{Modules: make([]Allocated, len(modules))}
	for i, k := range steps {
		a.Modules[i].Uses = modules[i].uses(modules[i].compositions[k])
	}
	if err := a.finish(p, g); err != nil {
		return nil, err
	}
	if !complete {
		_, _, bound = g.leastCost(lower, p.SLO, maxNodes)
	}
	a.Bound = min(bound, a.Cost)
	a.Proven = a.Bound >= a.Cost*(1-sumTolerance)
	return a, nil
}

// Bound returns a cost in $/h that no allocation is below, whatever the rates of its machines: that of the fractional
// program, in which items at a machine that is not full wait no longer than at a full one (the paper's first step). It
// is 0 if not even that keeps the objective, and for a problem that is not well formed.
func Bound(p *Problem) float64 {
	if p.Check() != nil {
		return 0
	}
	g, err := p.graph()
	if err != nil {
		return 0
	}
	curves := make([]costCurve, len(p.Modules))
	for i := range curves {
		curves[i], _ = p.module(i).fractional(p.SLO)
	}
	_, _, bound := g.leastCost(curves, p.SLO, maxNodes)
	return bound
}

// Method makes allocations. ctx ends a long search.
type Method func(ctx context.Context, p *Problem) (*Allocation, error)
