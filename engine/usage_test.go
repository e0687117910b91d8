package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const hour = serving.Time(time.Hour)

// Time is billed at the price in force when it passes: an integral over time, against one computed from a random
// history of prices, launches and stops.
func TestUsageIsBilledAtThePriceOfTheHour(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 6))
		c := simtest.Typed([]int{1, 1}, [][2]time.Duration{{1e6, 1e6}, {2e6, 2e6}}, time.Second, 8)
		s := systems.System{Router: "roundrobin", Batcher: "greedy"}
		e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		prices, runs := []float64{1, 1}, []bool{false, false}
		now, want := serving.Time(0), 0.0
		for range 20 {
			next := now + serving.Time(rng.Int64N(int64(hour)))
			for d := range prices {
				if runs[d] {
					want += prices[d] * (next - now).Seconds() / 3600
				}
			}
			now = next
			d := serving.DeviceTypeID(rng.IntN(2))
			if rng.IntN(3) > 0 {
				prices[d] = float64(rng.IntN(5))
				e.Step(now, []engine.Input{engine.NewPriceChanged(d, prices[d])})
			} else {
				runs[d] = !runs[d]
				p := &plan.Plan{Planner: "test"}
				for k := range runs {
					if runs[k] {
						p.Instances = append(p.Instances, c.Plan.Instances[k])
					}
				}
				for _, x := range e.Step(now, []engine.Input{engine.NewPlanReady(p)}) {
					if x.Kind == engine.LaunchInstance {
						e.Step(now, []engine.Input{engine.NewVariantReady(x.Instance, 0)})
					}
				}
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			if got := e.Usage(now).Dollars; math.Abs(got-want) > 1e-9 {
				t.Fatalf("seed %d: $%v by %v, want $%v", seed, got, now, want)
			}
			if e.Price(d) != prices[d] {
				t.Fatalf("seed %d: $%v/h for type %d, want $%v/h", seed, e.Price(d), d, prices[d])
			}
		}
	}
}
