package test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Plans of Proteus to a gap of 0.5 %: 20 demands from 30 to 130 % of what the fleet carries, of two mixes in turn, from
// nothing and from the plan for the demand before. Published (§6.8): 4.2 s on average for the first size, to a gap of
// 50 %.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct {
		name string
		make func(b *testing.B) (*serving.Spec, serving.Measurements)
	}{
		{"devices=40/variants=46/apps=9", func(b *testing.B) (*serving.Spec, serving.Measurements) {
			return measured(b, 1)
		}},
		{"devices=160/variants=450/apps=17", func(b *testing.B) (*serving.Spec, serving.Measurements) {
			return multiplied(b, rand.New(rand.NewPCG(1, 7)), 160, 17, 450)
		}},
		{"devices=2000/variants=46/apps=9", func(b *testing.B) (*serving.Spec, serving.Measurements) {
			return measured(b, 50)
		}},
		{"devices=2000/variants=450/apps=17", func(b *testing.B) (*serving.Spec, serving.Measurements) {
			return multiplied(b, rand.New(rand.NewPCG(2, 7)), 2000, 17, 450)
		}},
	} {
		b.Run(size.name, func(b *testing.B) {
			spec, m := size.make(b)
			p := &proteus.Planner{
				Profile: believed(b, spec, m), Solver: highstest.Solver(b),
				Options: proteus.Options{Batches: []int{1, 2, 4, 8}},
			}
			var mixes [][]float64 // each as much as is carried of it
			for n := range 2 {
				mix := zipf(len(spec.Apps), 5*n)
				most, _, err := proteus.Reach(context.Background(), p, plan.Request{Spec: spec, Rates: mix})
				if err != nil {
					b.Fatal(err)
				}
				mixes = append(mixes, scaled(mix, most))
			}
			var demands [][]float64
			for n := range 20 {
				demands = append(demands, scaled(mixes[n%2], 0.3+float64(n)/19))
			}
			for _, from := range []string{"nothing", "last"} {
				b.Run("from="+from, func(b *testing.B) {
					var took []time.Duration
					var gap float64
					unproven, n := 0, 0
					r := plan.Request{Spec: spec}
					for b.Loop() {
						// A whole pass at least, so that the median is one of all demands.
						for range 20 {
							r.Rates = demands[n%20]
							n++
							begun := time.Now()
							out, err := p.Plan(context.Background(), r)
							if err != nil {
								b.Fatal(err)
							}
							took = append(took, time.Since(begun))
							gap = max(gap, out.Gap)
							if !out.Proven {
								unproven++
							}
							if from == "last" {
								r.Snapshot = running(out, spec)
							}
						}
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
					b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "worst-ms")
					b.ReportMetric(100*gap, "worst-gap-%")
					b.ReportMetric(float64(unproven), "unproven")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}
