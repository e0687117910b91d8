package scrooge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// anyRate is the least cost of a module within a latency when its machines may get any rates: for all numbers of
// machines in all modes, each has between the rate at which its batches form in time and what it carries, the cheapest
// the most.
func anyRate(p *Problem, m *Module, within time.Duration) float64 {
	type bounds struct{ least, most, price float64 }
	var modes []bounds
	for k := range m.Modes {
		x := &m.Modes[k]
		if x.WorstLatency(x.Rate()) > within {
			continue
		}
		b := bounds{most: x.Rate(), price: p.pricePerItem(x)}
		if x.Batch > 1 {
			b.least = min(b.most, float64(x.Batch)/(within-x.Latency).Seconds())
		}
		modes = append(modes, b)
	}
	slices.SortFunc(modes, func(a, b bounds) int {
		if a.price < b.price {
			return -1
		}
		return 1
	})
	best := math.Inf(1)
	counts := make([]float64, len(modes))
	var try func(k int, least, most float64)
	try = func(k int, least, most float64) {
		if least > m.Rate*(1+costTolerance) {
			return
		}
		if k < len(modes) {
			for counts[k] = 0; counts[k]*modes[k].least <= m.Rate &&
				(counts[k]-1)*modes[k].most <= m.Rate; counts[k]++ {
				try(k+1, least+counts[k]*modes[k].least, most+counts[k]*modes[k].most)
			}
			return
		}
		if most < m.Rate*(1-costTolerance) {
			return
		}
		more, cost := m.Rate-least, 0.0
		for i, x := range modes {
			add := max(0, min(more, counts[i]*(x.most-x.least)))
			more -= add
			cost += x.price * (counts[i]*x.least + add)
		}
		best = min(best, cost)
	}
	try(0, 0, 0)
	return best
}

// The search leaves out machines that get less than they can carry so that a partial one in another mode gets more.
// This test tries them at many latencies on small graphs: they seldom cost less.
func TestAnyRate(t *testing.T) {
	const latencies = 100
	served, gain, sum, most := 0, 0, 0.0, 0.0
	for seed := range uint64(200) {
		p := Small(rand.New(rand.NewPCG(seed, 9)))
		if len(p.Modules) > 3 {
			continue
		}
		a, err := Exact(p)
		if err != nil || a.Cost == 0 {
			continue
		}
		curves := make([]costCurve, len(p.Modules))
		for i := range curves {
			m := p.module(i)
			m.frontier(p.SLO, maxCurveWork)
			for k := time.Duration(1); k <= latencies; k++ {
				within := p.SLO * k / latencies
				c := anyRate(p, &p.Modules[i], within)
				if c > m.curve.cost(within)*(1+1e-9) {
					t.Fatalf("seed %d, module %d, within %v: any rates cost %v, those searched %v", seed, i, within, c,
						m.curve.cost(within))
				}
				m.add(point{within, c}, func() composition { return composition{} })
			}
			curves[i] = m.curve
		}
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		_, cost, _ := g.leastCost(curves, p.SLO, maxNodes)
		if bound := Bound(p); cost < bound*(1-1e-9) {
			t.Errorf("seed %d: %v is below the bound of %v", seed, cost, bound)
		}
		served++
		above := a.Cost/cost - 1
		if above > 1e-9 {
			gain++
		}
		sum, most = sum+above, max(most, above)
	}
	t.Logf("%d graphs: any rates cost less in %d, by %.2f %% in the mean of all, by %.1f %% at most",
		served, gain, 100*sum/float64(served), 100*most)
	if served < 40 {
		t.Errorf("only %d graphs could be served", served)
	}
}
