package kairos

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/sluice-serving/sluice/serving"
)

// The program by a general simplex method, written down as the comment on Fluid has it, pools and late shares of all
// kinds.
func TestFluidAgainstGeneralSimplex(t *testing.T) {
	positive := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := someMarket(rng, 1+rng.IntN(4), 1+rng.IntN(8))
		late := []float64{0, 0.01, 0.1}[rng.IntN(3)]
		f, err := NewFluid(m, late)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			p := somePool(rng, len(m.Types), 5)
			got, want := f.Of(p), general(t, m, late, p)
			if want > 1e-6 {
				positive++
			}
			if math.Abs(got-want) > 1e-7*want+1e-7 {
				t.Fatalf("seed %d, pool %v, late %v: %v, a general method says %v", seed, p, late, got, want)
			}
			if fresh, _ := NewFluid(m, late); math.Abs(fresh.Of(p)-got) > 1e-9*got {
				t.Fatalf("seed %d, pool %v: %v after other pools, %v alone", seed, p, got, fresh.Of(p))
			}
		}
	}
	if positive < 1000 {
		t.Errorf("only %d pools serve anything", positive)
	}
}

// general solves the program over theta, x_ct and a slack for each row. Time is in milliseconds.
func general(t *testing.T, m *Market, late float64, p Pool) float64 {
	types, classes := len(m.Types), m.Mix.Classes()
	rows := classes + types + 1
	columns := [][]float64{make([]float64, rows)}
	costs := []float64{-1}
	b := make([]float64, rows)
	columns[0][classes+types] = 1 - late
	for c := range classes {
		_, share := m.Mix.Class(c)
		columns[0][c] = -share
		for k := range types {
			if chance := m.inTime(k, c); chance > 0 {
				column := make([]float64, rows)
				column[c], column[classes+k], column[classes+types] = 1, m.Types[k].Latency[c].Seconds()*1000, -chance
				columns, costs = append(columns, column), append(costs, 0)
			}
		}
	}
	for k, n := range p {
		b[classes+k] = float64(n) * 1000
	}
	for r := range rows {
		column := make([]float64, rows)
		column[r] = 1
		columns, costs = append(columns, column), append(costs, 0)
	}
	a := mat.NewDense(rows, len(columns), nil)
	for j, column := range columns {
		a.SetCol(j, column)
	}
	least, _, err := lp.Simplex(costs, a, b, 1e-10, nil)
	if err != nil {
		t.Fatal(err)
	}
	return -least
}

// The solution satisfies the program's constraints and reaches the bound. One more machine adds
// its marginal rate, or less where it adds at that rate for a part of it only.
func TestFluidSolution(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := someMarket(rng, 1+rng.IntN(4), 1+rng.IntN(30))
		late := 0.02 * rng.Float64()
		f, err := NewFluid(m, late)
		if err != nil {
			t.Fatal(err)
		}
		p := somePool(rng, len(m.Types), 6)
		s := f.Solve(p)
		if s.Bound == 0 {
			if s.MarginalRates != nil || s.Use != nil {
				t.Fatalf("seed %d: nothing is served, yet %+v", seed, s)
			}
			continue
		}
		inTime, dual := 0.0, 0.0
		busy := make([]float64, len(p))
		for c := range m.Mix.Classes() {
			_, share := m.Mix.Class(c)
			used := 0.0
			for k := range m.Types {
				use := s.Use[k][c]
				if use < 0 {
					t.Fatalf("seed %d: type %d has %v of class %d", seed, k, use, c)
				}
				used += use
				inTime += share * use * m.inTime(k, c)
				busy[k] += s.Bound * share * use * m.Types[k].Latency[c].Seconds()
			}
			if used > 1+1e-6 {
				t.Fatalf("seed %d: class %d runs %v times", seed, c, used)
			}
		}
		if inTime < 1-late-1e-6 {
			t.Fatalf("seed %d: %v in time, %v may be late", seed, inTime, late)
		}
		for k, n := range p {
			if busy[k] > float64(n)+1e-5 {
				t.Fatalf("seed %d: %d machines are busy for %v", seed, n, busy[k])
			}
			dual += float64(n) * s.MarginalRates[k]
			more := slices.Clone(p)
			more[k]++
			if gain := f.Of(more) - s.Bound; s.MarginalRates[k] < gain-1e-6*s.Bound || gain < -1e-9*s.Bound {
				t.Fatalf("seed %d: a machine of type %d adds %v, it is worth %v", seed, k, gain, s.MarginalRates[k])
			}
		}
		if math.Abs(dual-s.Bound) > 1e-8*s.Bound {
			t.Fatalf("seed %d: the machines are worth %v, the bound is %v", seed, dual, s.Bound)
		}
	}
}

// No schedule exceeds the bound. Queries are drawn from the mix in exactly its shares, and sent at random to wherever
// they are in time, or left out as late. The best of many random schedules, and the oracle's, stay below.
func TestFluidBoundsSchedules(t *testing.T) {
	closest := 0.0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := someMarket(rng, 1+rng.IntN(4), 1+rng.IntN(10))
		for k := range m.Types {
			m.Types[k].InTime = nil
		}
		var queries []int
		for c := range m.Mix.Classes() {
			_, share := m.Mix.Class(c)
			for range int(math.Round(share * float64(m.Mix.Count))) {
				queries = append(queries, c)
			}
		}
		p := somePool(rng, len(m.Types), 3)
		late := []float64{0, 0.05}[rng.IntN(2)]
		f, err := NewFluid(m, late)
		if err != nil {
			t.Fatal(err)
		}
		bound := f.Of(p)
		for range 20 {
			if got := greedily(rng, m, p, queries, late); got > bound*(1+1e-9) {
				t.Fatalf("seed %d, pool %v: a schedule serves %v, the bound is %v", seed, p, got, bound)
			} else if bound > 0 {
				closest = max(closest, got/bound)
			}
		}
		if got := NewOracle(m, queries).Of(p); got > bound*(1+1e-9) {
			t.Fatalf("seed %d, pool %v: the oracle serves %v, the bound is %v", seed, p, got, bound)
		}
	}
	if closest < 0.9 {
		t.Errorf("no schedule came closer than %v to its bound: the test shows little", closest)
	}
}

// greedily serves queries in random order, each on the machine where it ends first or on a random one, and leaves out
// the slowest ones as far as they may be late. It returns the queries, late ones included, divided by the time until
// the last one ends.
func greedily(rng *rand.Rand, m *Market, p Pool, queries []int, late float64) float64 {
	var free []float64
	var kind []int
	for k, n := range p {
		for range n {
			free, kind = append(free, 0), append(kind, k)
		}
	}
	drop := int(late * float64(len(queries)))
	last, random := 0.0, 0.3*rng.Float64()
	for i, at := range rng.Perm(len(queries)) {
		c := queries[at]
		best := -1
		for j := range free {
			if m.Serves(kind[j], c) && (best < 0 || rng.Float64() < random ||
				free[j]+m.Types[kind[j]].Latency[c].Seconds() < free[best]+m.Types[kind[best]].Latency[c].Seconds()) {
				best = j
			}
		}
		if drop > 0 && (best < 0 || c > m.Mix.Classes()/2 || len(queries)-i <= drop) {
			drop--
			continue
		}
		if best < 0 {
			return 0
		}
		free[best] += m.Types[kind[best]].Latency[c].Seconds()
		last = max(last, free[best])
	}
	if last == 0 {
		return 0
	}
	return float64(len(queries)) / last
}

// First, a market for which Eq. 15 is not a bound: it is better to send the smallest queries to the base machine, which
// serves them a hundred times as fast, and the middle ones to the auxiliary machine, which is as fast as the base
// machine. Eq. 15 sends all small queries to the auxiliary machine. Then, a market for which Eq. 15 is loose: two
// auxiliary types with different regions.
func TestFluidAgainstUpper(t *testing.T) {
	at := time.Millisecond
	m := &Market{Mix: serving.Mix{
		Sizes: []int32{1, 2, 3}, Shares: []float64{0.45, 0.45, 0.1},
	}, Within: 150 * at, Types: []Type{
		{Name: "base", Latency: []time.Duration{1 * at, 100 * at, 100 * at}}, {
			Name: "auxiliary", Latency: []time.Duration{100 * at, 100 * at, 200 * at},
		},
	}}
	f, _ := NewFluid(m, 0)
	p := Pool{1, 1}
	// By hand: the base machine takes all of 1 and 3 and a part of 2: 0.45 + 10 + 45 - y = y = 27.725 ms for a query.
	if got := f.Of(p); math.Abs(got-1000/27.725) > 1e-9*got {
		t.Errorf("the program bounds %v by %v, want %v", p, got, 1000/27.725)
	}
	if got := NewUpper(m).Of(p); got >= f.Of(p) {
		t.Errorf("Eq. 15 bounds %v by %v, which %v can be shown to pass", p, got, f.Of(p))
	}
	m = &Market{Mix: serving.Mix{
		Sizes: []int32{1, 2, 3}, Shares: []float64{0.1, 0.5, 0.4},
	}, Within: 150 * at, Types: []Type{
		{Name: "base", Latency: []time.Duration{50 * at, 50 * at, 50 * at}}, {
			Name: "a", Latency: []time.Duration{100 * at, 100 * at, 200 * at},
		},
		{Name: "b", Latency: []time.Duration{150 * at, 160 * at, 200 * at}},
	}}
	f, _ = NewFluid(m, 0)
	if upper, fluid := NewUpper(m).Of(Pool{1, 1, 9}), f.Of(Pool{1, 1, 9}); upper < 1.2*fluid {
		t.Errorf("Eq. 15 credits b with sizes that it does not serve: %v, the program has %v", upper, fluid)
	}
}

func TestFluidRefusesLate(t *testing.T) {
	for _, late := range []float64{-0.1, 1, math.NaN()} {
		if _, err := NewFluid(ec2(), late); err == nil {
			t.Errorf("a part of %v that may be late was taken", late)
		}
	}
}

func BenchmarkRankFluid(b *testing.B) {
	m, pools := thousand()
	b.ReportAllocs()
	for b.Loop() {
		f, err := NewFluid(m, 0.01)
		if err != nil {
			b.Fatal(err)
		}
		Rank(m, f, pools)
	}
}
