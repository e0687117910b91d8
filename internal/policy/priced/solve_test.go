package priced

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/lp"
)

// random fills a dual and the linear program that it is the dual of: apps of one or two stages on some groups of
// machines.
func random(rng *rand.Rand) (*dual, *lp.Program) {
	groups, apps := 1+rng.IntN(3), 1+rng.IntN(4)
	d, p := &dual{}, &lp.Program{}
	d.reset(groups)
	p.Reset(groups + 3*apps)
	for g := range groups {
		d.supply[g] = 1 + 5*rng.Float64()
		p.Limit(g, d.supply[g])
	}
	row := groups
	for range apps {
		stages := 1 + rng.IntN(2)
		demand := 20 * rng.Float64()
		d0 := len(d.nodes)
		for s := range stages {
			d.addNode(1)
			for g := range groups {
				for v := range 1 + rng.IntN(3) {
					e := entry{0.02 + 0.3*rng.Float64(), 0.15 * float64(v) * rng.Float64()}
					d.addEntry(g, e.time, e.loss)
					p.Add(-e.loss, math.Inf(1), lp.Term{Row: g, Coef: e.time}, lp.Term{Row: row + 1 + s, Coef: -1})
				}
			}
		}
		d.addFlow(demand, 1)
		p.Limit(row, demand)
		terms := []lp.Term{{Row: row, Coef: 1}}
		for s := range stages {
			items := 1 + 2*rng.Float64()
			d.addItems(d0+s, items)
			terms = append(terms, lp.Term{Row: row + 1 + s, Coef: items})
		}
		p.Add(1, math.Inf(1), terms...)
		row += 3
	}
	return d, p
}

// bound is the dual function, without smoothing: no prices make it less than the program's optimum.
func (d *dual) bound() (sum float64) {
	for g, p := range d.price {
		sum += p * d.supply[g]
	}
	for _, f := range d.flows {
		surplus := f.value
		for _, t := range d.terms[f.from:f.to] {
			n, least := d.nodes[t.node], math.Inf(1)
			for _, x := range d.spans[n.from:n.to] {
				for _, e := range d.entries[x.from:x.to] {
					least = min(least, e.loss+d.price[x.group]*e.time)
				}
			}
			surplus -= t.items * least
		}
		sum += f.demand * max(surplus, 0)
	}
	return sum
}

// The prices are those of the program within what smoothing costs: they prove a bound that is near its optimum. Each
// solve goes on from the last, as it does every 10 ms in a run. Descent by groups is slow where groups replace each
// other, so a few bounds are farther.
func TestPricesAgainstTheProgram(t *testing.T) {
	const seeds, solves = 300, 15
	worst, sum, far := 0.0, 0.0, 0
	for seed := range uint64(seeds) {
		d, p := random(rand.New(rand.NewPCG(seed, 5)))
		if s := p.Solve(0); s != lp.Optimal {
			t.Fatalf("seed %d: %v", seed, s)
		}
		for range solves {
			d.solve()
		}
		most, got := p.Objective(), d.bound()
		if got < most*(1-1e-9) {
			t.Errorf("seed %d: bound %v is below the optimum %v", seed, got, most)
		}
		above := got/most - 1
		worst, sum = max(worst, above), sum+above
		if above > 0.05 {
			far++
		}
	}
	t.Logf("bounds are %.2f %% above the optimum on average, %.1f %% at most, %d of %d by more than 5 %%",
		100*sum/seeds, 100*worst, far, seeds)
	if sum/seeds > 0.01 || far > seeds/30 {
		t.Errorf("%.2f %% on average, %d by more than 5 %%", 100*sum/seeds, far)
	}
}

// Prices are found without an allocation once a program of that size was solved.
func TestPricesAllocateNothing(t *testing.T) {
	d, _ := random(rand.New(rand.NewPCG(3, 5)))
	if n := testing.AllocsPerRun(20, d.solve); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Time that is left over costs nothing.
func TestIdleTimeIsFree(t *testing.T) {
	d := &dual{}
	d.reset(1)
	d.supply[0] = 10
	d.addNode(1)
	d.addEntry(0, 0.1, 0)
	d.addFlow(50, 1)
	d.addItems(0, 1)
	if d.solve(); d.price[0] != 0 {
		t.Errorf("5 of 10 machines are in use, the price is %v", d.price[0])
	}
	d.supply[0] = 4
	if d.solve(); math.Abs(d.price[0]-10) > 0.5 {
		t.Errorf("a machine serves 10/s and 5 are needed of 4: the price is %v, want about 10", d.price[0])
	}
}
