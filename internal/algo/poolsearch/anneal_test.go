package poolsearch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Neighbours against the definition: coordinates that differ by one in one place, or by one up and one down in two.
func TestAround(t *testing.T) {
	points := priced([]int{3, 2, 4}, []float64{0.5, 0.3, 0.2}, 2)
	s := space(t, points, nil)
	for i, p := range points {
		var want []int
		for j, q := range points {
			up, down, more := 0, 0, false
			for c := range p {
				switch d := q[c] - p[c]; d {
				case 0:
				case 1:
					up++
				case -1:
					down++
				default:
					more = true
				}
			}
			if !more && up <= 1 && down <= 1 && up+down > 0 {
				want = append(want, j)
			}
		}
		got := neighboursOf(s, i)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("around %v: %v, want %v", p, got, want)
		}
	}
}

// Worse points are accepted as often as the schedule says, better ones always.
func TestAccept(t *testing.T) {
	points := [][]int{{0}, {1}, {2}}
	s := space(t, points, nil)
	search := Annealing(s, Cooling{Initial: 0.5, Factor: 0.8}, rand.New(rand.NewPCG(1, 2)))
	value := []float64{3, 7, 5}
	search.Run(func(i int) float64 { return value[i] })
	a := search.strategy.(*annealing)
	if want := 0.5 * 0.8 * 0.8 * 0.8 * 4; math.Abs(a.temperature()-want) > 1e-12 {
		t.Fatalf("temperature %v, want %v", a.temperature(), want)
	}
	a.at = 1
	const draws = 20000
	n := 0
	for range draws {
		if a.accept(5) {
			n++
		}
		if !a.accept(7) || !a.accept(8) {
			t.Fatal("a point that is no worse is not accepted")
		}
	}
	p := math.Exp(-2 / a.temperature())
	if sigma := math.Sqrt(draws * p * (1 - p)); math.Abs(float64(n)-draws*p) > 5*sigma {
		t.Errorf("accepted %d times, want %v give or take %.0f", n, draws*p, sigma)
	}
}

// At a temperature near 0 the walk climbs: on a line with one peak it reaches the peak from any start and passes each
// point once.
func TestColdWalkClimbs(t *testing.T) {
	var points [][]int
	for x := range 30 {
		points = append(points, []int{x})
	}
	for seed := uint64(1); seed <= 20; seed++ {
		s := space(t, points, nil)
		search := Annealing(s, Cooling{Initial: 1e-12}, rand.New(rand.NewPCG(seed, 0)))
		a := search.strategy.(*annealing)
		start, _ := search.Next()
		for a.at != 19 {
			i, _ := search.Next()
			if a.at < 0 && len(s.Trials()) > 0 {
				t.Fatalf("seed %d: jumped before the peak", seed)
			}
			search.Tell(-math.Abs(float64(i) - 19))
		}
		// All places on the way, the start's other side, and the peak's.
		if n, most := len(s.Trials()), max(start-19, 19-start)+2; n > most {
			t.Errorf("seed %d: %d evaluations from %d to 19, want at most %d", seed, n, start, most)
		}
	}
}
