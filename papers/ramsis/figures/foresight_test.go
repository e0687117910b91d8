package ramsis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/runtime/highs"
)

// The decomposition gives the solution of the whole linear program, which has a row for every interval.
func TestForesight(t *testing.T) {
	solver, err := highs.New(highs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full, none := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		list := []model{{name: "a", accuracy: 60}, {name: "b", accuracy: 75}, {name: "c", accuracy: 85}}
		heavy := float64(1 + rng.IntN(3))
		for m := range list {
			for b := range list[m].took {
				list[m].took[b] = time.Duration(float64(m*m+1)*heavy*(8+5*float64(b+1))) * time.Millisecond
			}
		}
		slo := time.Duration(60+rng.IntN(100)) * time.Millisecond
		workers := 1 + rng.IntN(3)
		var arrivals []float64
		at, gap := 0.0, 0.02*rng.Float64()/float64(workers)
		for range 5 + rng.IntN(40) {
			at += rng.ExpFloat64() * gap
			arrivals = append(arrivals, at)
		}
		p := milp.Program{Maximize: true}
		gets := make([][]milp.Term, len(arrivals)) // seconds of each query
		for i, c := range curves(arrivals, list, slo) {
			var whole []milp.Term
			for _, k := range c {
				x := p.Column(milp.Column{Objective: k.accuracy / float64(len(arrivals)), Upper: 1})
				whole = append(whole, milp.Term{Column: x, Coef: 1})
				gets[i] = append(gets[i], milp.Term{Column: x, Coef: k.seconds})
			}
			p.Row(1, 1, whole...)
		}
		for i := range arrivals {
			var inside []milp.Term
			for j := i; j < len(arrivals); j++ {
				inside = append(inside, gets[j]...)
				p.Row(math.Inf(-1), float64(workers)*(arrivals[j]+slo.Seconds()-arrivals[i]),
					append([]milp.Term(nil), inside...)...)
			}
		}
		s, err := solver.Solve(t.Context(), &p, milp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := foresightBound(arrivals, list, slo, workers)
		switch {
		case s.Status == milp.Infeasible:
			none++
			if !math.IsNaN(got) {
				t.Errorf("seed %d: %v where some query must be late", seed, got)
			}
		case s.Status != milp.Optimal || math.Abs(got-s.Objective) > 1e-4:
			t.Errorf("seed %d: %v, the program says %v (%v)", seed, got, s.Objective, s.Status)
		case got < 85:
			full++
		}
	}
	if full < 10 || none < 5 {
		t.Errorf("only %d cases in which time is short, %d without a way", full, none)
	}
	t.Logf("%d cases in which time is short, %d in which some query must be late", full, none)
}
