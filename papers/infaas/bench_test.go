package infaas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
)

// One plan from a placement made for another demand: 9 apps on 40 workers, 17 on 2,000, at about the load at which
// accuracy begins to fall.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ apps, workers int }{{9, 40}, {17, 2000}} {
		b.Run(fmt.Sprintf("apps=%d/workers=%d", size.apps, size.workers), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 6))
			w := cluster{}
			for n := range size.workers {
				w.workers = append(w.workers, n%3)
			}
			for range size.apps {
				var offers []offer
				for v := range 5 {
					ms := float64(int(4)<<v) * (0.5 + rng.Float64())
					offers = append(offers, offer{0.6 + 0.08*float64(v), []float64{3 * ms, ms, 0.7 * ms}})
				}
				w.apps = append(w.apps, offers)
			}
			spec, believed := w.build()
			p := &Planner{Profile: believed}
			var requests []plan.Request
			var last *plan.Plan
			for range 8 {
				r := plan.Request{Spec: spec, Rates: make([]float64, size.apps)}
				for a := range r.Rates {
					r.Rates[a] = (5 + 20*rng.Float64()) * float64(size.workers) / float64(size.apps)
				}
				if last != nil {
					r.Snapshot = running(last, 0)
				}
				var err error
				if last, err = p.Plan(b.Context(), r); err != nil {
					b.Fatal(err)
				}
				requests = append(requests, r)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := p.Plan(b.Context(), requests[1+n%7]); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
