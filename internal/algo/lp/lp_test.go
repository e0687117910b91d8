package lp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/lp"
	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/highstest"
)

// The example of Chvátal, Linear Programming, chapter 2: maximise 5x + 4y + 3z.
func TestTextbook(t *testing.T) {
	var p lp.Program
	p.Reset(3)
	for r, b := range []float64{5, 11, 8} {
		p.Limit(r, b)
	}
	p.Add(5, math.Inf(1), lp.Term{Row: 0, Coef: 2}, lp.Term{Row: 1, Coef: 4}, lp.Term{Row: 2, Coef: 3})
	p.Add(4, math.Inf(1), lp.Term{Row: 0, Coef: 3}, lp.Term{Row: 1, Coef: 1}, lp.Term{Row: 2, Coef: 4})
	p.Add(3, math.Inf(1), lp.Term{Row: 0, Coef: 1}, lp.Term{Row: 1, Coef: 2}, lp.Term{Row: 2, Coef: 2})
	if s := p.Solve(0); s != lp.Optimal {
		t.Fatal(s)
	}
	for j, want := range []float64{2, 0, 1} {
		if got := p.Value(j); math.Abs(got-want) > 1e-9 {
			t.Errorf("column %d is %v, want %v", j, got, want)
		}
	}
	if math.Abs(p.Objective()-13) > 1e-9 {
		t.Errorf("objective %v, want 13", p.Objective())
	}
	for r, want := range []float64{1, 0, 1} {
		if math.Abs(p.Dual(r)-want) > 1e-9 {
			t.Errorf("price of row %d is %v, want %v", r, p.Dual(r), want)
		}
	}
	p.Add(1, math.Inf(1))
	if s := p.Solve(0); s != lp.Unbounded {
		t.Errorf("%v, want unbounded", s)
	}
}

// random fills a program and its copy for HiGHS. Many limits are 0, many columns alike: the degenerate case is the
// usual one.
func random(rng *rand.Rand, rows, columns int) (*lp.Program, *milp.Program, [][]lp.Term) {
	p, q := &lp.Program{}, &milp.Program{Maximize: true}
	p.Reset(rows)
	for r := range rows {
		b := 0.0
		if rng.IntN(3) > 0 {
			b = float64(rng.IntN(20))
		}
		p.Limit(r, b)
		q.Row(-milp.Inf, b)
	}
	var all [][]lp.Term
	for range columns {
		var terms []lp.Term
		for r := range rows {
			if rng.IntN(rows) < 3 {
				terms = append(terms, lp.Term{Row: r, Coef: float64(rng.IntN(9) - 3)})
			}
		}
		upper := float64(rng.IntN(10))
		if rng.IntN(4) == 0 {
			upper = 1000
		}
		cost := float64(rng.IntN(12) - 2)
		p.Add(cost, upper, terms...)
		c := q.Column(milp.Column{Objective: cost, Upper: upper})
		for _, x := range terms {
			q.Rows[x.Row].Terms = append(q.Rows[x.Row].Terms, milp.Term{Column: c, Coef: x.Coef})
		}
		all = append(all, terms)
	}
	return p, q, all
}

// verify holds a solution against its own proof: it is feasible, no column could improve it, and primal and dual
// objective agree.
func verify(t *testing.T, seed uint64, p *lp.Program, q *milp.Program, all [][]lp.Term) {
	t.Helper()
	x := p.Solution(nil)
	dual := 0.0
	for r := range q.Rows {
		used := 0.0
		for _, term := range q.Rows[r].Terms {
			used += term.Coef * x[term.Column]
		}
		if used > q.Rows[r].Upper+1e-6 {
			t.Errorf("seed %d: row %d takes %v of %v", seed, r, used, q.Rows[r].Upper)
		}
		if p.Dual(r) < -1e-7 {
			t.Errorf("seed %d: row %d has the price %v", seed, r, p.Dual(r))
		}
		dual += p.Dual(r) * q.Rows[r].Upper
	}
	for j, c := range q.Columns {
		if x[j] < -1e-7 || x[j] > c.Upper+1e-6 {
			t.Errorf("seed %d: column %d is %v, want it in [0, %v]", seed, j, x[j], c.Upper)
		}
		dual += c.Upper * max(0, p.ReducedCost(c.Objective, all[j]...))
	}
	if math.Abs(dual-p.Objective()) > 1e-5*(1+math.Abs(dual)) {
		t.Errorf("seed %d: objective %v, its dual %v", seed, p.Objective(), dual)
	}
}

// Random programs have their proof of optimality, and HiGHS finds the same objective.
func TestAgainstHiGHS(t *testing.T) {
	solver := highstest.Solver(t)
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, q, all := random(rng, 1+rng.IntN(25), 1+rng.IntN(80))
		if s := p.Solve(0); s != lp.Optimal {
			t.Fatalf("seed %d: %v", seed, s)
		}
		verify(t, seed, p, q, all)
		if seed%5 > 0 {
			continue
		}
		s, err := solver.Solve(context.Background(), q, milp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Objective-p.Objective()) > 1e-6*(1+math.Abs(s.Objective)) {
			t.Errorf("seed %d: objective %v, HiGHS has %v", seed, p.Objective(), s.Objective)
		}
	}
}

// After columns are added, limits move and costs change, a solve that continues from the last basis reaches the same
// objective as a solve from the slacks.
func TestGoingOn(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		rows := 1 + rng.IntN(30)
		p, q, all := random(rng, rows, 1+rng.IntN(40))
		for range 6 {
			if s := p.Solve(0); s != lp.Optimal {
				t.Fatalf("seed %d: %v", seed, s)
			}
			verify(t, seed, p, q, all)
			switch rng.IntN(3) {
			case 0:
				_, more, terms := random(rng, rows, 1+rng.IntN(20))
				for j, c := range more.Columns {
					p.Add(c.Objective, c.Upper, terms[j]...)
					n := q.Column(c)
					for _, x := range terms[j] {
						q.Rows[x.Row].Terms = append(q.Rows[x.Row].Terms, milp.Term{Column: n, Coef: x.Coef})
					}
					all = append(all, terms[j])
				}
			case 1:
				r := rng.IntN(rows)
				q.Rows[r].Upper = float64(rng.IntN(30))
				p.Limit(r, q.Rows[r].Upper)
			case 2:
				j := rng.IntN(len(q.Columns))
				q.Columns[j].Objective = float64(rng.IntN(10))
				p.Cost(j, q.Columns[j].Objective)
			}
		}
	}
}

// A program that has its size allocates nothing when it is made and solved again.
func TestNoAllocation(t *testing.T) {
	var p lp.Program
	terms := make([]lp.Term, 2)
	run := func() {
		p.Reset(12)
		for r := range 12 {
			p.Limit(r, float64(1+r))
		}
		for j := range 60 {
			terms[0], terms[1] = lp.Term{Row: j % 4, Coef: 1 + float64(j%7)}, lp.Term{Row: 4 + j%8, Coef: 1}
			p.Add(1+float64(j%5), 1e9, terms...)
		}
		p.Solve(0)
	}
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, size := range [][2]int{{10, 60}, {40, 400}, {150, 3000}} {
		b.Run(sizeName(size), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 9))
			var p lp.Program
			kinds := size[0] / 4
			for b.Loop() {
				p.Reset(size[0])
				for r := range size[0] {
					p.Limit(r, float64(1+r%7))
				}
				for range size[1] {
					p.Add(rng.Float64(), 1e9, lp.Term{Row: rng.IntN(kinds), Coef: 0.1 + rng.Float64()},
						lp.Term{Row: kinds + rng.IntN(size[0]-kinds), Coef: 1})
				}
				if p.Solve(0) != lp.Optimal {
					b.Fatal("not optimal")
				}
			}
		})
	}
}

func sizeName(s [2]int) string {
	return map[int]string{10: "rows=10/columns=60", 40: "rows=40/columns=400", 150: "rows=150/columns=3000"}[s[0]]
}
