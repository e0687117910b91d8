package poolsearch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// hill makes values that rise ever slower in every coordinate.
func hill(points [][]int) []float64 {
	value := make([]float64, len(points))
	for i, p := range points {
		for c, x := range p {
			value[i] += math.Sqrt(float64(x) * float64(2+c))
		}
	}
	return value
}

// One whole search: on Kairos's pools of four types for 2.5 $/h with at least one machine of the base type, and on the
// box of Ribbon's largest table, there with at most 200 evaluations.
func BenchmarkSearch(b *testing.B) {
	kairos := priced([]int{5, 6, 17, 15}, []float64{0.526, 0.432, 0.149, 0.1664}, 2.5)
	kairos = slices.DeleteFunc(kairos, func(p []int) bool { return p[0] == 0 })
	ribbon := priced([]int{9, 12, 12}, []float64{0, 0, 0}, 1)
	for _, points := range [][][]int{kairos, ribbon} {
		value := hill(points)
		bounds := make([]float64, len(points))
		for i := range bounds {
			bounds[i] = value[i] * (1.01 + 0.1*float64(i%7))
		}
		for _, k := range kinds {
			for _, pruning := range []struct {
				name string
				rule PruneRule
			}{{"below", PruneSubsets}, {"none", nil}} {
				b.Run(fmt.Sprintf("%s/%d/%s", k.name, len(points), pruning.name), func(b *testing.B) {
					b.ReportAllocs()
					tried := 0
					for b.Loop() {
						s := space(b, points, pruning.rule)
						if len(points) > 1000 {
							s.Limit = 200
						}
						k.make(s, bounds, rand.New(rand.NewPCG(1, 1))).Run(func(i int) float64 { return value[i] })
						_, tried, _ = s.Count()
					}
					b.ReportMetric(float64(tried), "evaluations")
				})
			}
		}
	}
}
