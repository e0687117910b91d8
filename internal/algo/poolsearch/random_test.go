package poolsearch

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Every point is as likely as any other to come first, and, when the first prunes one, to come second among the rest.
func TestUniform(t *testing.T) {
	const runs = 30000
	points := [][]int{{0}, {1}, {2}, {3}, {4}}
	rng := rand.New(rand.NewPCG(7, 7))
	var count [5][5]int
	for range runs {
		s := space(t, points, func(s *Space, point int, _ float64) { s.Prune((point + 1) % 5) })
		search := Random(s, rng)
		a, _ := search.Next()
		search.Tell(0)
		b, _ := search.Next()
		count[a][b]++
	}
	for a := range count {
		for b, n := range count[a] {
			p := 1.0 / 5 / 3
			if b == a || b == (a+1)%5 {
				p = 0
			}
			if sigma := math.Sqrt(runs * p * (1 - p)); math.Abs(float64(n)-runs*p) > 5*sigma {
				t.Errorf("%d and then %d came %d times, want %v give or take %.0f", a, b, n, runs*p, sigma)
			}
		}
	}
}
