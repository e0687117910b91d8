package dag

import (
	"math"
	"math/rand/v2"
	"testing"
)

// longest tries every path.
func longest(after [][]int, time []float64) float64 {
	var from func(v int) float64
	from = func(v int) float64 {
		best := 0.0
		for _, u := range after[v] {
			best = max(best, from(u))
		}
		return best + time[v]
	}
	best := 0.0
	for v := range after {
		best = max(best, from(v))
	}
	return best
}

func times(rng *rand.Rand, n int) ([]float64, float64) {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		out[i] = float64(1 + rng.IntN(100))
		sum += out[i]
	}
	return out, sum
}

func check(t *testing.T, after [][]int, time []float64, sum float64) *Tree {
	t.Helper()
	tree, err := Fold(after)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.Sequential(time); math.Abs(got-sum) > 1e-9 {
		t.Fatalf("%v: all tasks take %v, want %v", after, got, sum)
	}
	if got, want := tree.Parallel(time), longest(after, time); math.Abs(got-want) > 1e-9 {
		t.Fatalf("%v: side by side they take %v, the longest path %v", after, got, want)
	}
	return tree
}

// TestWorked folds graphs whose structure is plain to see.
func TestWorked(t *testing.T) {
	for name, c := range map[string]struct {
		after    [][]int
		parallel float64
		kind     Kind
		knots    int
	}{
		"nothing":   {nil, 0, Empty, 0},
		"one":       {[][]int{{}}, 1, Task, 0},
		"chain":     {[][]int{{}, {0}, {1}}, 1 + 2 + 4, Chain, 0},
		"apart":     {[][]int{{}, {}, {}}, 4, Branches, 0},
		"diamond":   {[][]int{{}, {0}, {0}, {1, 2}}, 1 + 4 + 8, Chain, 0},
		"skip":      {[][]int{{}, {0}, {1, 0}}, 1 + 2 + 4, Chain, 0},
		"twice":     {[][]int{{}, {0, 0}}, 1 + 2, Chain, 0},
		"backwards": {[][]int{{1}, {2}, {}}, 1 + 2 + 4, Chain, 0},
		// 0 and 1 feed 2; 1 alone feeds 3: no pair of parts meets between two points only.
		"letter N": {[][]int{{}, {}, {0, 1}, {1}}, 2 + 8, Irreducible, 1},
		// Two branches of two tasks each within a chain, as in an inception block.
		"block": {[][]int{{}, {0}, {1}, {0}, {3}, {2, 4}}, 1 + 8 + 16 + 32, Chain, 0},
	} {
		t.Run(name, func(t *testing.T) {
			time, sum := make([]float64, len(c.after)), 0.0
			for i := range time {
				time[i] = float64(int(1) << i)
				sum += time[i]
			}
			tree := check(t, c.after, time, sum)
			if tree.Parallel(time) != c.parallel || tree.Kind != c.kind || tree.Irreducibles() != c.knots {
				t.Errorf("parallel %v, kind %d, knots %d; want %v, %d, %d", tree.Parallel(time), tree.Kind,
					tree.Irreducibles(), c.parallel, c.kind, c.knots)
			}
		})
	}
}

// TestRandom compares with every path of random graphs, most of which are not series-parallel.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	knots := 0
	for range 3000 {
		n, dense := 1+rng.IntN(12), rng.Float64()
		after := make([][]int, n)
		label := rng.Perm(n) // the numbers of tasks say nothing of their order
		for v := range n {
			for u := range v {
				if rng.Float64() < dense {
					after[label[v]] = append(after[label[v]], label[u])
				}
			}
		}
		time, sum := times(rng, n)
		knots += check(t, after, time, sum).Irreducibles()
	}
	if knots == 0 {
		t.Error("not one graph was a knot")
	}
}

// TestSeriesParallel grows graphs by the two rules and checks that they fold completely.
func TestSeriesParallel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		after := [][]int{{}}
		task := func(before ...int) int {
			after = append(after, before)
			return len(after) - 1
		}
		// grow adds a part after task v and returns the task it ends with.
		var grow func(v, depth int) int
		grow = func(v, depth int) int {
			switch {
			case depth == 0:
				return task(v)
			case rng.IntN(2) == 0:
				return grow(grow(v, depth-1), depth-1)
			}
			var ends []int
			for range 2 + rng.IntN(2) {
				ends = append(ends, grow(v, depth-1))
			}
			return task(ends...)
		}
		grow(0, rng.IntN(4))
		time, sum := times(rng, len(after))
		if tree := check(t, after, time, sum); tree.Irreducibles() != 0 {
			t.Fatalf("%v: %d knots", after, tree.Irreducibles())
		}
	}
}

// TestRefused checks what is no graph of tasks.
func TestRefused(t *testing.T) {
	for _, after := range [][][]int{{{0}}, {{1}, {0}}, {{5}}, {{-1}}} {
		if _, err := Fold(after); err == nil {
			t.Errorf("%v was folded", after)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	after := make([][]int, 1000)
	for v := 1; v < len(after); v++ {
		for range 1 + rng.IntN(2) {
			after[v] = append(after[v], max(0, v-1-rng.IntN(5)))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Fold(after); err != nil {
			b.Fatal(err)
		}
	}
}
