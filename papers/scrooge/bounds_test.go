package scrooge

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// alike is a module of many modes that cost about the same, which take long to search.
func alike(rng *rand.Rand) *Problem {
	p := &Problem{SLO: 200 * time.Millisecond, Prices: []float64{1}}
	m := Module{Rate: 900 + 200*rng.Float64()}
	for range 40 {
		batch := 2 + rng.IntN(14)
		ms := float64(batch) * (9 + 2*rng.Float64())
		m.Modes = append(m.Modes, Mode{Batch: batch, Slots: 1, Latency: time.Duration(ms * 1e6)})
	}
	p.Modules = []Module{m}
	return p
}

// A search that is cut short has a lower curve that nothing is below.
func TestCutShort(t *testing.T) {
	open := 0
	for seed := range uint64(30) {
		p := alike(rand.New(rand.NewPCG(seed, 11)))
		whole := p.module(0)
		whole.frontier(p.SLO, 1<<22)
		if !whole.complete {
			t.Fatalf("seed %d: not complete", seed)
		}
		for _, work := range []int{1, 10, 100} {
			m := p.module(0)
			m.frontier(p.SLO, work)
			if !m.complete {
				open++
			}
			for at := time.Duration(0); at <= p.SLO; at += 100 * time.Microsecond {
				low, exact, high := m.lower.cost(at), whole.curve.cost(at), m.curve.cost(at)
				if low > exact*(1+1e-9) || exact > high*(1+1e-9) {
					t.Fatalf("seed %d, %d steps, within %v: %v, exactly %v, at least %v", seed, work, at, high, exact,
						low)
				}
			}
		}
	}
	if open == 0 {
		t.Error("no search was cut short")
	}
}

// steps draws a curve.
func steps(rng *rand.Rand) costCurve {
	var c costCurve
	p := point{time.Duration(1 + rng.IntN(20)), 10 + 10*rng.Float64()}
	for range 1 + rng.IntN(12) {
		c = append(c, p)
		p.latency += time.Duration(1 + rng.IntN(10))
		p.cost *= 0.5 + 0.5*rng.Float64()
	}
	return c
}

// The objective is divided as well as possible over any graph: all choices of steps are tried. With few nodes there is
// a bound.
func TestLeast(t *testing.T) {
	irreducible, short := 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 12))
		p := &Problem{}
		n := 1 + rng.IntN(5)
		for i := range n {
			m := Module{}
			for k := i + 1; k < n; k++ {
				if rng.IntN(2) == 0 {
					m.Next = append(m.Next, k)
				}
			}
			p.Modules = append(p.Modules, m)
		}
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		if !g.exact {
			irreducible++
		}
		curves := make([]costCurve, n)
		for i := range curves {
			curves[i] = steps(rng)
		}
		within := time.Duration(10 + rng.IntN(60*n))
		want := math.Inf(1)
		latency := make([]time.Duration, n)
		var try func(i int, cost float64)
		try = func(i int, cost float64) {
			if i == n {
				if _, length := g.longestPath(latency); length <= within {
					want = min(want, cost)
				}
				return
			}
			for _, s := range curves[i] {
				latency[i] = s.latency
				try(i+1, cost+s.cost)
			}
		}
		try(0, 0)
		for _, limit := range []int{maxNodes, 1} {
			chosen, cost, bound := g.leastCost(curves, within, limit)
			if (chosen == nil) != math.IsInf(want, 1) {
				t.Fatalf("seed %d: %v, the least is %v", seed, chosen, want)
			}
			if chosen == nil {
				continue
			}
			for i, k := range chosen {
				latency[i] = curves[i][k].latency
			}
			if _, length := g.longestPath(latency); length > within {
				t.Fatalf("seed %d: takes %v of %v", seed, length, within)
			}
			if bound > want*(1+1e-9) || cost < want*(1-1e-9) {
				t.Fatalf("seed %d: costs %v, at least %v, the least is %v", seed, cost, bound, want)
			}
			if cost > want*(1+1e-9) || bound < want*(1-1e-9) {
				if short++; limit == maxNodes || g.exact {
					t.Fatalf("seed %d: costs %v, at least %v, the least is %v", seed, cost, bound, want)
				}
			}
		}
	}
	if irreducible < 20 || short == 0 {
		t.Errorf("%d graphs were not series-parallel, %d searches were cut short", irreducible, short)
	}
}
