package poolsearch

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The parents are always the best points of whole generations, and win as often as tournaments of two predict.
func TestGenetic(t *testing.T) {
	points := priced([]int{9, 9}, []float64{0, 0}, 1)
	value := hill(points)
	for seed := uint64(1); seed <= 20; seed++ {
		s := space(t, points, nil)
		search := Genetic(s, Evolution{Population: 8}, rand.New(rand.NewPCG(seed, 0)))
		g := search.strategy.(*genetic)
		var seen []float64
		for n := 1; n <= 48; n++ {
			i, _ := search.Next()
			search.Tell(value[i])
			seen = append(seen, value[i])
			if n%8 != 0 {
				continue
			}
			slices.SortFunc(seen, func(a, b float64) int { return cmp.Compare(b, a) })
			for r, i := range g.parents {
				if value[i] != seen[r] {
					t.Fatalf("seed %d: parent %d after %d evaluations has %v, want %v", seed, r, n, value[i], seen[r])
				}
			}
		}
		const draws = 20000
		count := make(map[int]int)
		for range draws {
			count[g.tournament()]++
		}
		for r, i := range g.parents {
			// The best of two draws is the r-th of 8 with probability (2 (8-r) - 1)/64.
			p := float64(2*(8-r)-1) / 64
			if sigma := math.Sqrt(draws * p * (1 - p)); math.Abs(float64(count[i])-draws*p) > 5*sigma {
				t.Errorf("seed %d: parent %d won %d times, want %v", seed, r, count[i], draws*p)
			}
		}
	}
}

// A child takes each coordinate from a parent; with every coordinate mutated, each is one off.
func TestChild(t *testing.T) {
	points := priced([]int{20, 20}, []float64{0, 0}, 1)
	s := space(t, points, nil)
	parentA, _ := s.Index([]int{5, 15})
	parentB, _ := s.Index([]int{15, 5})
	for _, mutation := range []float64{1e-300, 1} {
		search := Genetic(s, Evolution{Mutation: mutation}, rand.New(rand.NewPCG(1, 0)))
		g := search.strategy.(*genetic)
		g.parents = []int{parentA, parentB}
		seen := make(map[[2]int]bool)
		for range 500 {
			g.next()
			seen[[2]int{g.child[0], g.child[1]}] = true
			for c, x := range g.child {
				off := min(max(x-5, 5-x), max(x-15, 15-x))
				if want := int(math.Round(mutation)); off != want {
					t.Fatalf("mutation %v: coordinate %d of child %v is %d off, want %d", mutation, c, g.child, off,
						want)
				}
			}
		}
		if want := 4; mutation < 1 && len(seen) != want {
			t.Errorf("%d different children, want %d", len(seen), want)
		}
	}
}

// Repair against a plain search for the least difference.
func TestNearest(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		points := priced([]int{5, 5, 5}, []float64{1, 2, 3}, 15)
		s := space(t, points, nil)
		for i := range points {
			if rng.IntN(3) > 0 {
				s.Prune(i)
			}
		}
		g := Genetic(s, Evolution{}, rng).strategy.(*genetic)
		for c := range g.child {
			g.child[c] = rng.IntN(8) - 1
		}
		away := func(i int) (sum float64) {
			for c, x := range points[i] {
				sum += math.Abs(float64(x - g.child[c]))
			}
			return sum
		}
		least := math.Inf(1)
		for i := range points {
			if s.Open(i) {
				least = min(least, away(i))
			}
		}
		if i := g.nearest(); !s.Open(i) || away(i) != least {
			t.Errorf("seed %d: %v is %v from %v, the nearest open %v", seed, points[i], away(i), g.child, least)
		}
	}
}
