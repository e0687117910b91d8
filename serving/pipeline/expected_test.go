package pipeline_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving/pipeline"
)

func TestMeanItems(t *testing.T) {
	g := graphOf(5, edge{from: 0, to: 1, fanOut: 2.5}, one(0, 2), edge{from: 1, to: 3, fanOut: 0.5}, one(2, 3),
		edge{from: 3, to: 4, fanOut: 0})
	if got, want := g.MeanItems(), []float64{1, 2.5, 1, 1.25, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	spec := specOf(4, edge{from: 0, to: 1, fanOut: 2.5}, edge{from: 0, to: 2, fanOut: 0.5}, one(1, 3), one(2, 3))
	spec.Stages[1].EachQuery, spec.Stages[2].EachQuery = true, true
	if got, want := pipeline.New(spec, 0).MeanItems(), []float64{1, 1, 0.5, 1}; !slices.Equal(got, want) {
		t.Errorf("stages that are called for each query: %v, want %v", got, want)
	}
	if got := g.LongestPath(); got != 4 {
		t.Errorf("the longest path has %d stages, want 4", got)
	}
	if got := graphOf(1).LongestPath(); got != 1 {
		t.Errorf("the path of one stage has %d", got)
	}
}

// Random graphs: a stage gets the largest product of fan-outs along any path to it. The longest path has as many stages
// as any path that is walked.
func TestMeanItemsOfRandomGraphs(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(8)
		edges := randomEdges(rng, n)
		want, longest := make([]float64, n), 0
		var walk func(at, stages int, product float64)
		walk = func(at, stages int, product float64) {
			want[at] = max(want[at], product)
			longest = max(longest, stages)
			for _, e := range edges {
				if e.from == at {
					walk(e.to, stages+1, product*e.fanOut)
				}
			}
		}
		walk(0, 1, 1)
		g := graphOf(n, edges...)
		same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*b }
		if got := g.MeanItems(); !slices.EqualFunc(got, want, same) || g.LongestPath() != longest {
			t.Fatalf("seed %d: %+v: %v items, longest path %d, want %v, %d", seed, edges, got, g.LongestPath(), want,
				longest)
		}
	}
}
