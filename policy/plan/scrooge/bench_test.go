package scrooge_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan/scrooge"
)

// BenchmarkExact reports the median and the longest time of Exact over problems of 30 machine types.
func BenchmarkExact(b *testing.B) {
	for name, shape := range figure1 {
		b.Run(name, func(b *testing.B) {
			var problems []*scrooge.Problem
			for seed := range uint64(50) {
				problems = append(problems, many(rand.New(rand.NewPCG(seed, 30)), shape, 30))
			}
			var took []time.Duration
			unproven, failed := 0, 0
			above := 0.0
			for b.Loop() {
				p := problems[len(took)%len(problems)]
				start := time.Now()
				a, err := scrooge.Exact(p)
				took = append(took, time.Since(start))
				if err != nil {
					failed++
					continue
				}
				if !a.Proven {
					unproven++
					above = max(above, a.Cost/a.Bound-1)
				}
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms-median")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "ms-worst")
			b.ReportMetric(float64(unproven)/float64(len(took)), "unproven")
			b.ReportMetric(above, "above")
			b.ReportMetric(float64(failed)/float64(len(took)), "failed")
		})
	}
}
