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

// counted is a planner that counts its requests and answers.
type counted struct {
	plan.Planner
	plans, loads int
}

func (c *counted) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p, err := c.Planner.Plan(ctx, r)
	if err == nil {
		c.plans++
		c.loads += p.Loads
	}
	return p, err
}

// Plans every second, and more often in bursts, on random clusters with failing workers: the invariants hold after
// every step, and every query ends exactly once while instances change.
func TestGreedyPlansKeepTheInvariants(t *testing.T) {
	for _, oddities := range []bool{false, true} {
		plans, loads := 0, 0
		for seed := range uint64(30) {
			rng := rand.New(rand.NewPCG(seed, 78))
			c := simtest.Random(rng)
			for a := range c.Spec.Apps { // what waits for an app that has no instance is given up in time
				c.Spec.Apps[a].Late = serving.DropLate
			}
			s, err := systems.Get("infaas-accuracy")
			if err != nil {
				t.Fatal(err)
			}
			s.Options.Release = oddities
			// Planned for up to forty times the load, which alone would seldom lead to a change.
			s.Options.Planning.Headroom = 1 + 40*rng.Float64()
			p, err := s.NewPlanner(systems.PlannerInputs{Profile: c.Profile})
			if err != nil {
				t.Fatal(err)
			}
			asked := &counted{Planner: p}
			first, err := p.Plan(t.Context(), plan.Request{Spec: c.Spec})
			if err != nil {
				t.Fatal(err)
			}
			e, err := s.Engine(c.Spec, c.Profile, p.Provides())
			if err != nil {
				t.Fatal(err)
			}
			tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
			if err != nil {
				t.Fatal(err)
			}
			load := c.Load(rng, 1500)
			fault := Fault{
				At:     serving.Time(rng.Int64N(int64(load[len(load)-1].At) + 1)),
				Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
			}
			fault.Until = fault.At.Add(3 * time.Second)
			ended := make(map[serving.QueryID]bool)
			_, err = Run(Config{
				Spec: c.Spec, Engine: e, Truth: tr, Initial: first, Source: workload.FromSlice(load),
				Faults:  []Fault{fault},
				Planner: asked, PlanDelay: time.Duration(rng.IntN(300)) * time.Millisecond, Check: true,
				Limit: serving.Time(10 * time.Minute),
				Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
					for i := range out {
						if d := &out[i]; d.Kind == engine.EndQuery {
							if ended[d.Query] {
								t.Errorf("seed %d: query %d ended twice", seed, d.Query)
							}
							ended[d.Query] = true
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
			plans, loads = plans+asked.plans, loads+asked.loads
		}
		what := fmt.Sprintf("oddities %v: %d plans with %d loads", oddities, plans, loads)
		if t.Log(what); plans < 300 || loads < 50 {
			t.Errorf("%s: hardly anything changed", what)
		}
	}
}
