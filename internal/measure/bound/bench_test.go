package bound

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
)

// The bound of a minute of ten apps with five variants each, queries of many sizes, on three kinds of machine.
func BenchmarkUtility(b *testing.B) {
	s := highstest.Solver(b)
	rng := rand.New(rand.NewPCG(1, 1))
	w := world{machines: []int{10, 20, 5}, factor: []float64{1, 2, 0.5}}
	var queries []Query
	for range 10 {
		a := w.app(100*ms, 1)
		for v := range 5 {
			w.variant(time.Duration(v)*ms, time.Duration(1+v)*ms, 0.5+0.1*float64(v), 64, 0)
		}
		for at := 0.0; at < 60; at += rng.ExpFloat64() / 100 {
			q := steady(a, 1, time.Second, 100*ms, float64(1+rng.IntN(16)))[0]
			q.Arrived = q.Arrived.Add(time.Duration(at * 1e9))
			q.Deadline = q.Deadline.Add(time.Duration(at * 1e9))
			queries = append(queries, q)
		}
	}
	for b.Loop() {
		r, err := Utility(context.Background(), s, w.world(), queries, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Utility, "utility")
	}
}
