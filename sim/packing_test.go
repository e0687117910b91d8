package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Every system that packs instances, with repeated plans on random clusters with failures: the invariants hold after
// every step, every query ends, and plans are valid.
func TestPackingKeepsTheInvariants(t *testing.T) {
	plans := 0
	for _, name := range []string{
		"infless", "infless-balanced", "infless-dense", "infless-release", "infless-without-batching", "batch",
		"batch+rs",
	} {
		system, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		system.Options.Replan = 150 * time.Millisecond
		for seed := uint64(1); seed <= 28; seed++ {
			rng := rand.New(rand.NewPCG(seed, 66))
			c := simtest.Random(rng)
			load := c.Load(rng, 400)
			planner, err := system.NewPlanner(systems.PlannerInputs{Profile: c.Profile})
			if err != nil {
				t.Fatal(err)
			}
			initial, err := planner.Plan(context.Background(), plan.Request{Spec: c.Spec})
			if err != nil {
				continue // nothing meets an objective here
			}
			e, err := system.Engine(c.Spec, c.Profile, planner.Provides())
			if err != nil {
				t.Fatal(err)
			}
			tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
			if err != nil {
				t.Fatal(err)
			}
			ended := 0
			_, err = Run(Config{
				Spec: c.Spec, Engine: e, Truth: tr, Initial: initial, Source: workload.FromSlice(load),
				Planner: checked{t, planner, &plans}, PlanDelay: 20 * time.Millisecond, Check: true,
				Faults: []Fault{
					{
						At:     serving.Time(rng.Int64N(int64(load[len(load)-1].At) + 1)),
						Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
					},
				}, Limit: serving.Time(10 * time.Minute),
				Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
					for i := range out {
						if out[i].Kind == engine.EndQuery {
							ended++
						}
					}
				},
			})
			if err != nil || ended != len(load) {
				t.Fatal(fmt.Errorf("%s, seed %d: %d of %d queries ended: %w", name, seed, ended, len(load), err))
			}
		}
	}
	if plans < 500 {
		t.Errorf("only %d plans", plans)
	}
}

// checked is a planner that fails the test when a plan is not valid.
type checked struct {
	t *testing.T
	plan.Planner
	plans *int
}

func (c checked) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p, err := c.Planner.Plan(ctx, r)
	if err == nil {
		*c.plans++
		err = p.Validate(r.Spec)
		if err != nil {
			c.t.Error(err)
		}
	}
	return p, err
}
