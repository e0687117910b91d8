package infless

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/packingtest"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
)

// BenchmarkPlan makes a plan from scratch on 2,000 servers for 40 functions (§5.3). The paper's takes 0.5 ms for an
// instance and below a second for 10,000 of them.
func BenchmarkPlan(b *testing.B) {
	rng := rand.New(rand.NewPCG(4, 4))
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var models []packingtest.Model
	shares := make([]float64, 40)
	for k := range shares {
		models = append(models, packingtest.Model{
			SLO: ms(100 + rng.IntN(200)), Batch: 32, Fixed: ms(2 + rng.IntN(40)), Work: ms(5 + rng.IntN(60)),
		})
		shares[k] = 0.2 + rng.Float64()
	}
	spec, believed := packingtest.Spec(2000, 32, 2, 0, models)
	for _, load := range []float64{100, 2000, 20000, 90000} {
		rates := make([]float64, len(shares))
		for k, s := range shares {
			rates[k] = s * load
		}
		p := New(believed, Options{})
		r := plan.Request{Spec: spec, Rates: rates}
		first, err := p.Plan(context.Background(), r)
		if err != nil {
			b.Fatal(err)
		}
		n := len(first.Instances)
		again := r
		again.Snapshot = packingtest.After(spec, first)
		balanced := New(believed, Options{Balanced: true})
		for _, c := range []struct {
			name string
			p    *packing.Planner
			r    plan.Request
		}{{"scratch", p, r}, {"steady", p, again}, {"balanced", balanced, r}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					out, err := c.p.Plan(context.Background(), c.r)
					if err != nil {
						b.Fatal(err)
					}
					n = len(out.Instances)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/instance")
			})
		}
	}
}
