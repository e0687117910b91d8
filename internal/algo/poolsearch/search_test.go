package poolsearch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// priced lists all points with coordinates up to a limit that cost at most the budget, without the origin.
func priced(most []int, price []float64, budget float64) [][]int {
	var out [][]int
	p := make([]int, len(most))
	for {
		c, cost := 0, 0.0
		for c < len(p) && p[c] == most[c] {
			p[c] = 0
			c++
		}
		if c == len(p) {
			return out
		}
		p[c]++
		for d := range p {
			cost += price[d] * float64(p[d])
		}
		if cost <= budget {
			out = append(out, slices.Clone(p))
		}
	}
}

// monotone draws values that do not fall in any coordinate: each is the highest value below its point, sometimes plus
// some. Points must be listed after those below them.
func monotone(rng *rand.Rand, points [][]int) []float64 {
	value := make([]float64, len(points))
	for i, p := range points {
		for j := range i {
			if atMost(points[j], p) {
				value[i] = max(value[i], value[j])
			}
		}
		if rng.IntN(3) > 0 {
			value[i] += rng.Float64()
		}
	}
	return value
}

// small draws a space of two to four types under a budget.
func small(rng *rand.Rand) [][]int {
	most, price := make([]int, 2+rng.IntN(3)), make([]float64, 4)
	for c := range most {
		most[c], price[c] = 1+rng.IntN(4), 0.1+rng.Float64()
	}
	return priced(most, price, 0.5+3*rng.Float64())
}

// kinds makes each of the searches. Only the first uses the bounds.
var kinds = []struct {
	name string
	make func(s *Space, bounds []float64, rng *rand.Rand) *Search
}{
	{"bounded", func(s *Space, bounds []float64, _ *rand.Rand) *Search {
		out, err := ByUpperBound(s, bounds)
		if err != nil {
			panic(err)
		}
		return out
	}},
	{"random", func(s *Space, _ []float64, rng *rand.Rand) *Search { return Random(s, rng) }},
	{"genetic", func(s *Space, _ []float64, rng *rand.Rand) *Search { return Genetic(s, Evolution{}, rng) }},
	{"annealing", func(s *Space, _ []float64, rng *rand.Rand) *Search { return Annealing(s, Cooling{}, rng) }},
	{"bayes", func(s *Space, _ []float64, rng *rand.Rand) *Search { return Bayes(s, Surrogate{}, rng) }},
}

func space(t testing.TB, points [][]int, rule PruneRule) *Space {
	s, err := NewSpace(points, rule)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Searches with sub-configuration pruning, run to the end on values that never fall in any coordinate, against the
// largest of all values; after every evaluation nothing that has been pruned is better than the best known.
func TestFindsBest(t *testing.T) {
	for _, k := range kinds {
		for seed := uint64(1); seed <= 60; seed++ {
			rng := rand.New(rand.NewPCG(seed, 1))
			points := small(rng)
			if len(points) == 0 {
				continue
			}
			value := monotone(rng, points)
			bounds := make([]float64, len(points))
			for i := range bounds {
				bounds[i] = value[i] + max(0, rng.NormFloat64())
			}
			s := space(t, points, PruneSubsets)
			search := k.make(s, bounds, rng)
			for n := 0; ; n++ {
				i, ok := search.Next()
				if !ok {
					break
				}
				if again, _ := search.Next(); again != i || !s.Open(i) {
					t.Fatalf("%s, seed %d: asks for %d, then for %d, open %v", k.name, seed, i, again, s.Open(i))
				}
				search.Tell(value[i])
				_, best, _ := s.Best()
				sum := 0
				for _, trial := range s.Trials() {
					sum += 1 + trial.Pruned
				}
				open, tried, pruned := s.Count()
				if open+tried+pruned != len(points) || tried != n+1 || sum != tried+pruned {
					t.Fatalf("%s, seed %d: %d open, %d evaluated, %d pruned of %d; trials sum to %d", k.name, seed,
						open, tried, pruned, len(points), sum)
				}
				for j := range points {
					if !s.Open(j) && value[j] > best {
						t.Fatalf("%s, seed %d: %v with %v has been pruned, best is %v", k.name, seed, points[j],
							value[j], best)
					}
				}
			}
			if i, v, ok := s.Best(); !ok || v != slices.Max(value) || value[i] != v {
				t.Errorf("%s, seed %d: best %v at %d, of all %v", k.name, seed, v, i, slices.Max(value))
			}
		}
	}
}

// Without a rule and with values of no order, some of which fail, everything is evaluated once.
func TestEvaluatesAll(t *testing.T) {
	for _, k := range kinds {
		for seed := uint64(1); seed <= 30; seed++ {
			rng := rand.New(rand.NewPCG(seed, 2))
			points := small(rng)
			value, bounds := make([]float64, len(points)), make([]float64, len(points))
			most, at := math.Inf(-1), -1
			for i := range value {
				value[i], bounds[i] = 1e6+rng.NormFloat64(), math.Inf(1)
				if rng.IntN(4) == 0 {
					value[i] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
				} else if value[i] > most {
					most, at = value[i], i
				}
			}
			s := space(t, points, nil)
			k.make(s, bounds, rng).Run(func(i int) float64 { return value[i] })
			if open, tried, _ := s.Count(); open != 0 || tried != len(points) {
				t.Errorf("%s, seed %d: %d of %d evaluated, %d open", k.name, seed, tried, len(points), open)
			}
			if i, _, ok := s.Best(); ok != (at >= 0) || ok && i != at {
				t.Errorf("%s, seed %d: best is %d, want %d", k.name, seed, i, at)
			}
		}
	}
}

// A seed decides everything, and a limit is kept.
func TestRepeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	points := priced([]int{4, 5, 6}, []float64{0.5, 0.2, 0.1}, 2)
	value := monotone(rng, points)
	bounds := slices.Repeat([]float64{math.Inf(1)}, len(points))
	for _, k := range kinds {
		run := func(seed uint64) []Trial {
			s := space(t, points, nil)
			s.Limit = 17
			k.make(s, bounds, rand.New(rand.NewPCG(seed, 0))).Run(func(i int) float64 { return value[i] })
			return s.Trials()
		}
		a, b, c := run(1), run(1), run(2)
		if len(a) != 17 || !slices.Equal(a, b) {
			t.Errorf("%s: seed 1 gives %v and then %v", k.name, a, b)
		}
		if k.name != "bounded" && slices.Equal(a, c) {
			t.Errorf("%s: seeds 1 and 2 both give %v", k.name, a)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, k := range kinds {
		s := space(t, nil, PruneSubsets)
		if _, ok := k.make(s, nil, rand.New(rand.NewPCG(1, 1))).Next(); ok {
			t.Errorf("%s asks for a point of an empty space", k.name)
		}
		if _, _, ok := s.Best(); ok {
			t.Errorf("%s: an empty space has a best point", k.name)
		}
	}
}

func TestTellUnasked(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a value that nobody asked for is taken")
		}
	}()
	Random(space(t, [][]int{{1}}, nil), rand.New(rand.NewPCG(1, 1))).Tell(1)
}

// Run searches to the end. value is called with the index of each point to evaluate and returns its value.
func (s *Search) Run(value func(point int) float64) {
	for i, ok := s.Next(); ok; i, ok = s.Next() {
		s.Tell(value(i))
	}
}
