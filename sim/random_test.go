package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Every router with every batcher that works with it, on random clusters, loads and failures: the invariants hold after
// every step, and every query that arrived ends exactly once. SLUICE_SEED runs one seed.
func TestEveryCombinationKeepsTheInvariants(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	if s := os.Getenv("SLUICE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{n}
	}
	for _, router := range systems.Routers() {
		for _, batcher := range systems.BatchersFor(router) {
			for _, seed := range seeds {
				t.Run(fmt.Sprintf("%s+%s/seed=%d", router, batcher, seed), func(t *testing.T) {
					t.Parallel()
					rng := rand.New(rand.NewPCG(seed, 77))
					c := simtest.Random(rng)
					load := c.Load(rng, 400)
					// Some ask for plans, by each of the scalers; some learn latency, from measurements or from
					// nothing; some keep instances for a turn-off delay.
					system := systems.System{
						Router: router, Batcher: batcher, Scaler: systems.Scalers()[int(seed)%len(systems.Scalers())],
					}
					system.Options.Learn = seed%4 == 0 || seed%4 == 3
					system.Options.Replan = 200 * time.Millisecond
					system.Options.Following.TurnOff = time.Duration(seed%3) * 150 * time.Millisecond
					var measured profile.Profile = c.Profile
					if seed%4 == 3 {
						measured = nil
					}
					e, err := system.Engine(c.Spec, measured, c.Planner.Provides())
					if err != nil {
						t.Fatal(err)
					}
					tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
					if err != nil {
						t.Fatal(err)
					}
					var faults []Fault
					for range rng.IntN(3) {
						faults = append(faults, Fault{
							At:     serving.Time(rng.Int64N(int64(load[len(load)-1].At) + 1)),
							Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
						})
					}
					if len(faults) == 2 && faults[1].At < faults[0].At {
						faults[0], faults[1] = faults[1], faults[0]
					}
					prices := []PriceChange{{At: load[len(load)/2].At, DeviceType: 0, Price: rng.Float64()}}
					ran := make(map[serving.QueryID]bool)
					ended := make(map[serving.QueryID]serving.Outcome)
					_, err = Run(Config{
						Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Source: workload.FromSlice(load),
						Faults: faults, Prices: prices, Planner: c.Planner, PlanDelay: 50 * time.Millisecond,
						Breaks: func(serving.BatchID) bool {
							return rng.IntN(50) == 0
						}, Check: true, Limit: serving.Time(10 * time.Minute),
						Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
							for i := range out {
								for _, p := range out[i].Tasks {
									ran[p.Query] = true
								}
								if d := &out[i]; d.Kind == engine.EndQuery {
									if o, again := ended[d.Query]; again {
										t.Errorf("query %d ended twice: %v, then %v (%v)", d.Query, o, d.Outcome,
											d.Reason)
									}
									ended[d.Query] = d.Outcome
									if d.Outcome == serving.Dropped &&
										now > max(d.Deadline, d.Arrived.Add(c.Spec.Apps[d.App].ColdWait))+1 &&
										!ran[d.Query] && c.Spec.Apps[d.App].Late == serving.DropLate {
										t.Errorf("query %d was dropped at %v, after its deadline %v: a drop must be "+
											"on time", d.Query, now, d.Deadline)
									}
								}
							}
						},
					})
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if len(ended) != len(load) {
						t.Errorf("seed %d: %d of %d queries ended", seed, len(ended), len(load))
					}
				})
			}
		}
	}
}
