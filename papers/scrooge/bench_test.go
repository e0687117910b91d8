package scrooge_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/papers/scrooge"
)

// BenchmarkExact takes the times of Exact over 50 problems of 30 machine types for each graph, and reports their median
// and the longest; a problem's time is the shortest of its runs, so run it with -benchtime of several times 50x.
func BenchmarkExact(b *testing.B) {
	for n, name := range scrooge.Names() {
		b.Run(name, func(b *testing.B) {
			problems := make([]*scrooge.Problem, 50)
			for seed := range problems {
				problems[seed] = scrooge.Many(rand.New(rand.NewPCG(uint64(seed), uint64(n))), scrooge.Figure1[name], 30)
			}
			took := make([]time.Duration, len(problems))
			run, unproven := 0, 0
			for b.Loop() {
				k := run % len(problems)
				run++
				start := time.Now()
				a, err := scrooge.Exact(problems[k])
				if d := time.Since(start); took[k] == 0 || d < took[k] {
					took[k] = d
				}
				if err != nil {
					b.Fatal(err)
				}
				if !a.Proven {
					unproven++
				}
			}
			took = slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 })
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms-median")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "ms-worst")
			b.ReportMetric(100*float64(unproven)/float64(run), "%unproven")
		})
	}
}
