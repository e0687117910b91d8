package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// randomRules are rules of a queue.
func randomRules(rng *rand.Rand) *serving.QueueRules {
	r := &serving.QueueRules{}
	if rng.IntN(2) == 0 {
		r.Delay = time.Duration(rng.IntN(20)) * time.Millisecond
		if n := rng.IntN(5); n > 0 {
			r.Preferred = []int{n, 2*n + 1}
		}
	}
	for range rng.IntN(4) {
		r.Levels = append(r.Levels, serving.QueueLevel{
			Timeout: time.Duration(rng.IntN(3)*rng.IntN(40)) * time.Millisecond, Defers: rng.IntN(2) == 0,
			Override: rng.IntN(2) == 0, Limit: rng.IntN(3) * rng.IntN(10),
		})
		r.Default = 1 + rng.IntN(len(r.Levels))
	}
	return r
}

// Whatever a queue's rules and the components of a system are, the invariants hold after every step, every query ends,
// and none is started that has waited for longer than its level allows where such queries are given up.
func TestRandomQueueRules(t *testing.T) {
	expired, deferred := 0, 0
	for seed := uint64(1); seed <= longtest.Of[uint64](60, 4000); seed++ {
		rng := rand.New(rand.NewPCG(seed, 23))
		c := simtest.Random(rng)
		for k := range c.Spec.Stages {
			c.Spec.Stages[k].Queue = randomRules(rng)
		}
		for a := range c.Spec.Apps {
			c.Spec.Apps[a].Late = serving.LatePolicy(rng.IntN(2))
		}
		routers := systems.Routers()
		router := routers[rng.IntN(len(routers))]
		batchers := systems.BatchersFor(router)
		s := systems.System{Router: router, Batcher: batchers[rng.IntN(len(batchers))], Scaler: "fixed"}
		name := fmt.Sprintf("seed %d, %s+%s", seed, s.Router, s.Batcher)
		e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		load := c.Load(rng, 300)
		for k := range load {
			load[k].Priority = int32(rng.IntN(5))
			load[k].Timeout = time.Duration(rng.IntN(2)*rng.IntN(80)) * time.Millisecond
		}
		observe := func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				d := &out[k]
				if d.Kind == engine.EndQuery && d.Reason == engine.QueueTimeout {
					expired++
				}
				if d.Kind != engine.StartBatch {
					continue
				}
				v := c.Spec.Variants[d.Variant]
				strictest := time.Duration(0)
				rules := c.Spec.Stages[v.Stage].Queue
				for _, l := range rules.Levels {
					if l.Defers || l.Timeout == 0 {
						strictest = time.Hour
					}
					strictest = max(strictest, l.Timeout)
				}
				for _, x := range d.Tasks {
					if len(rules.Levels) > 0 && x.Queue > strictest {
						t.Errorf("%s: query %d starts after %v, no level allows more than %v", name, x.Query, x.Queue,
							strictest)
					}
					for _, l := range rules.Levels {
						if l.Defers && l.Timeout > 0 && x.Queue > l.Timeout {
							deferred++
							break
						}
					}
				}
			}
		}
		if _, err = Run(Config{Spec: c.Spec, Engine: e, Truth: believing{c.Profile}, Source: workload.FromSlice(load),
			Initial: c.Plan, Planner: c.Planner, Check: true, Observe: observe,
			Limit: serving.Time(10 * time.Minute)}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Pending() > 0 {
			t.Errorf("%s: %d queries have not ended", name, e.Pending())
		}
	}
	if expired == 0 || deferred == 0 {
		t.Errorf("%d queries expired and %d were put back: the rules were not tried", expired, deferred)
	}
}
