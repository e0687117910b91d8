package scrooge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Limits of a brute-force search.
const (
	maxModuleAllocations = 1 << 20 // of one module
	maxCombinations      = 1 << 30 // of allocations of all modules
	contextCheckEvery    = 1 << 16 // combinations between looks at the context
)

// BruteForce finds the least cost by trying every allocation that is searched (see module): all numbers of full
// machines, all modes for the remaining rate, and all combinations over the modules. It shares nothing with Exact but
// the definition of a problem, and is for small problems. The error is ctx's, *Infeasible where nothing keeps the
// objective, or says that the problem is too large.
func BruteForce(ctx context.Context, p *Problem) (*Allocation, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := brute{
		p: p, ctx: ctx, cost: math.Inf(1), at: make([]time.Duration, len(p.Modules)),
		now: make([][]Use, len(p.Modules)),
	}
	for i := range p.Modules {
		e := enumeration{p: p, m: &p.Modules[i]}
		if e.fill(0, e.m.Rate, nil); e.tries > maxModuleAllocations {
			return nil, fmt.Errorf("scrooge: module %d has more than %d allocations, too many to try all", i,
				maxModuleAllocations)
		}
		b.ways = append(b.ways, e.useful())
	}
	b.leastCostFrom = make([]float64, len(p.Modules)+1)
	for i := len(p.Modules) - 1; i >= 0; i-- {
		least := math.Inf(1)
		for _, w := range b.ways[i] {
			least = min(least, w.cost)
		}
		b.leastCostFrom[i] = b.leastCostFrom[i+1] + least
	}
	b.try(0, 0)
	if b.err != nil {
		return nil, b.err
	}
	g, err := p.graph()
	if err != nil {
		return nil, err
	}
	if b.best == nil {
		return nil, p.infeasible(g)
	}
	a := &Allocation{Modules: make([]Allocated, len(p.Modules))}
	for i := range a.Modules {
		a.Modules[i].Uses = b.best[i]
	}
	err = a.finish(p, g)
	a.Bound, a.Proven = a.Cost, true
	return a, err
}

// moduleAllocation is an allocation of a module.
type moduleAllocation struct {
	uses  []Use
	cost  float64
	worst time.Duration
}

// enumeration lists all allocations of a module.
type enumeration struct {
	p     *Problem
	m     *Module
	found []moduleAllocation
	tries int
}

// fill tries all numbers of full machines in the modes from k on, and serves what is left in every mode.
func (e *enumeration) fill(k int, left float64, uses []Use) {
	if e.tries++; e.tries > maxModuleAllocations {
		return
	}
	if left <= sumTolerance*e.m.Rate {
		e.note(uses)
		return
	}
	if k == len(e.m.Modes) {
		e.tries += len(e.m.Modes)
		for j := range e.m.Modes {
			n := math.Ceil(left/e.m.Modes[j].Rate() - sumTolerance)
			e.note(append(uses, Use{Mode: j, Count: int(max(n, 1)), Rate: left / max(n, 1)}))
		}
		return
	}
	full := e.m.Modes[k].Rate()
	e.fill(k+1, left, uses)
	for n := 1; float64(n)*full <= left*(1+sumTolerance) && e.tries <= maxModuleAllocations; n++ {
		e.fill(k+1, left-float64(n)*full, append(uses, Use{Mode: k, Count: n, Rate: full}))
	}
}

func (e *enumeration) note(uses []Use) {
	t := moduleAllocation{uses: append([]Use(nil), uses...)}
	for _, u := range uses {
		mode := &e.m.Modes[u.Mode]
		t.cost += float64(u.Count) * u.Rate / mode.Rate() * e.p.Prices[mode.Type]
		t.worst = max(t.worst, mode.WorstLatency(min(u.Rate, mode.Rate())))
	}
	if t.worst <= e.p.SLO {
		e.found = append(e.found, t)
	}
}

// useful leaves out allocations that neither cost less nor take less time than another.
func (e *enumeration) useful() []moduleAllocation {
	slices.SortFunc(e.found, func(a, b moduleAllocation) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.worst, b.worst))
	})
	var out []moduleAllocation
	for _, t := range e.found {
		if len(out) == 0 || t.worst < out[len(out)-1].worst {
			out = append(out, t)
		}
	}
	return out
}

type brute struct {
	p             *Problem
	ctx           context.Context
	ways          [][]moduleAllocation
	leastCostFrom []float64 // by module: the least cost of it and those after it
	at            []time.Duration
	now           [][]Use
	best          [][]Use
	cost          float64
	tries         int
	err           error
}

// try tries the allocations of module i, given those of the modules before it.
func (b *brute) try(i int, cost float64) {
	if b.err != nil || cost+b.leastCostFrom[i] >= b.cost {
		return
	}
	if i == len(b.p.Modules) {
		b.cost, b.best = cost, append([][]Use(nil), b.now...)
		return
	}
	at := b.at[i]
	next := b.p.Modules[i].Next
	for _, w := range b.ways[i] {
		if b.tries++; b.tries%contextCheckEvery == 0 {
			if b.err = b.ctx.Err(); b.tries > maxCombinations {
				b.err = fmt.Errorf("scrooge: more than %d combinations, too many to try all", maxCombinations)
			}
			if b.err != nil {
				return
			}
		}
		end := at + w.worst
		if end > b.p.SLO {
			continue
		}
		old := make([]time.Duration, len(next))
		for k, n := range next {
			old[k], b.at[n] = b.at[n], max(b.at[n], end)
		}
		b.now[i] = w.uses
		b.try(i+1, cost+w.cost)
		for k, n := range next {
			b.at[n] = old[k]
		}
	}
}
