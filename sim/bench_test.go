package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	proteusrules "github.com/sluice-serving/sluice/papers/proteus/rules"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A whole simulation: arrivals, routing, batching, service and outcomes, at 80 % of the instances' capacity. ns/op is
// the time per query on one core.
func BenchmarkTraffic(b *testing.B) {
	for _, n := range []int{20, 200, 2000, -20} {
		name, learns := fmt.Sprintf("instances=%d", n), n < 0
		if n = max(n, -n); learns {
			name = fmt.Sprintf("instances=%d,learning", n)
		}
		b.Run(name, func(b *testing.B) {
			c := simtest.Uniform(n, 4*time.Millisecond, time.Millisecond, 100*time.Millisecond, 32)
			c.Spec.Apps[0].QueueLimit = 1 << 20
			var believed profile.Profile = c.Profile
			if learns {
				believed = profile.NewLearned(c.Spec, c.Profile)
			}
			e, err := engine.New(engine.Config{
				Spec: c.Spec, Profile: believed, Router: route.NewWeighted(), Batcher: proteusrules.Adaptive{},
				Provides: c.Planner.Provides(),
			})
			if err != nil {
				b.Fatal(err)
			}
			tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, workload.Rand(1, "service"))
			if err != nil {
				b.Fatal(err)
			}
			rate := 0.8 * c.Plan.Forecast.Throughput
			b.ReportAllocs()
			b.ResetTimer()
			r, err := Run(Config{Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true,
				Source: &poisson{rng: workload.Rand(1, "arrivals"), gap: float64(time.Second) / rate, left: b.N}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.Queries)/float64(max(r.Batches, 1)), "queries/batch")
			b.ReportMetric(float64(r.Queries)/b.Elapsed().Seconds(), "queries/s")
		})
	}
}
