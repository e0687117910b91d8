package scrooge

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// Greedy allocates by the heuristic of §4.3: of all modules, types and configurations it takes next the one with the
// highest ratio of throughput gain to cost times increase of latency. We read this as follows. Every module begins in
// its fastest mode. A mode gains throughput per cost, so the ratio is
//
//	(items/s per $/h of the new mode - that of the present one) / increase of the module's worst latency
//
// and modes change as long as one gains and the objective is kept. A module's machines are alike and share its rate
// evenly. The error is *Infeasible where even the fastest modes do not keep the objective; full machines mixed with
// others sometimes would.
func Greedy(p *Problem) (*Allocation, error) {
	g, err := p.checked()
	if err != nil {
		return nil, err
	}
	// Step 1: every module in its fastest mode.
	modules := make([]*module, len(p.Modules))
	latency, at := make([]time.Duration, len(modules)), make([]int, len(modules))
	for i := range modules {
		m := p.module(i)
		modules[i], at[i] = m, -1
		for _, k := range m.byPrice {
			if l := m.modes[k].sharedLatency(m.rate); m.rate > 0 && (at[i] < 0 || l < latency[i]) {
				at[i], latency[i] = k, l
			}
		}
		if m.rate > 0 && at[i] < 0 {
			return nil, p.infeasible(g)
		}
	}
	if _, length := g.longestPath(latency); length > p.SLO {
		return nil, g.explainInfeasible(latency, p.SLO)
	}
	// Step 2: the change with the best ratio that keeps the objective, as long as there is one.
	for {
		module, mode, best := -1, -1, 0.0
		before, behind := dag.Around(g.next, latency)
		for i, m := range modules {
			if m.rate == 0 {
				continue
			}
			for _, k := range m.byPrice {
				gain := 1/m.modes[k].price - 1/m.modes[at[i]].price
				if gain <= 0 {
					break // all that follow cost more per item
				}
				l := m.modes[k].sharedLatency(m.rate)
				if before[i]+l+behind[i] > p.SLO {
					continue
				}
				ratio := math.Inf(1)
				if l > latency[i] {
					ratio = gain / (l - latency[i]).Seconds()
				}
				if ratio > best {
					module, mode, best = i, k, ratio
				}
			}
		}
		if module < 0 {
			break
		}
		at[module], latency[module] = mode, modules[module].modes[mode].sharedLatency(modules[module].rate)
	}
	a := &Allocation{Modules: make([]Allocated, len(modules))}
	for i, m := range modules {
		a.Modules[i].Uses = m.uses(composition{remainderMode: at[i], remainder: m.rate})
	}
	err = a.finish(p, g)
	a.Bound = min(Bound(p), a.Cost)
	a.Proven = a.Bound >= a.Cost*(1-sumTolerance)
	return a, err
}

// cheapestMode returns the cheapest mode in which so many machines at most, which share a rate evenly, are within a
// latency, or -1.
func (m *module) cheapestMode(rate, most float64, within time.Duration) int {
	k := slices.IndexFunc(m.byPrice, func(k int) bool {
		return m.modes[k].machines(rate) <= most && m.modes[k].sharedLatency(rate) <= within
	})
	if k < 0 {
		return -1
	}
	return m.byPrice[k]
}
