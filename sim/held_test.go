package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A machine whose batcher held a query back until its client went away is free again: the next query is served.
func TestAMachineIsFreeAfterAHeldQueryHasGone(t *testing.T) {
	c := simtest.Uniform(1, 10*time.Millisecond, time.Millisecond, 200*time.Millisecond, 8)
	system := systems.System{Router: "priced", Batcher: "filltimeout", Scaler: "fixed"}
	e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[serving.QueryID]serving.Outcome{}
	at := func(d time.Duration) workload.Arrival {
		return workload.Arrival{At: serving.Time(d), Items: 1, Variant: serving.None, Sample: -1}
	}
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true,
		Source:  workload.FromSlice([]workload.Arrival{at(0), at(time.Millisecond), at(time.Second)}),
		Cancels: []Cancel{{At: serving.Time(2 * time.Millisecond), Query: 1}},
		Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				if d := &out[k]; d.Kind == engine.EndQuery {
					outcomes[d.Query] = d.Outcome
				}
			}
		},
	})
	if err != nil || outcomes[1] != serving.Cancelled || outcomes[3] != serving.Served {
		t.Errorf("%v, %v: want the first cancelled and the last served", outcomes, err)
	}
}

// Queries that wait centrally go on when one that a batcher held back on the only machine has gone: no batch ends then,
// and where late queries are served no deadline wakes anybody.
func TestQueriesBehindAHeldOneGoOn(t *testing.T) {
	for _, router := range systems.Routers() {
		for _, batcher := range []string{"filltimeout", "fixed"} {
			if !slices.Contains(systems.BatchersFor(router), batcher) {
				continue
			}
			c := simtest.Uniform(1, 10*time.Millisecond, time.Millisecond, 200*time.Millisecond, 8)
			c.Spec.Apps[0].Late = serving.ServeLate
			ends(t, c, systems.System{Router: router, Batcher: batcher, Scaler: "fixed"}, []workload.Arrival{
				{At: 0, Items: 1, Variant: serving.None, Sample: -1},
				{At: serving.Time(time.Millisecond), Items: 1, Variant: serving.None, Sample: -1},
			}, Cancel{At: serving.Time(2 * time.Millisecond), Query: 1})
		}
	}
}

// A query that is pinned to a variant below its app's floor is served by a machine that holds nothing else, whatever
// the router compares machines by.
func TestPinnedQueriesAreServedByMachinesWithoutAnActiveVariant(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	c := simtest.Random(rng)
	for len(c.Spec.Apps) < 2 || len(c.Spec.Apps[1].Stages) > 1 || !holdsOnlyPinned(c) {
		c = simtest.Random(rng)
	}
	c.Spec.Apps[1].Late = serving.ServeLate
	variants := c.Spec.Stages[c.Spec.Apps[1].Stages[0]].Variants
	var load []workload.Arrival
	for k := range 30 {
		load = append(load, workload.Arrival{
			At: serving.Time(5 * time.Millisecond * time.Duration(k)), App: 1, Items: 1, Sample: -1,
			Variant: variants[k%len(variants)],
		})
	}
	for _, router := range systems.Routers() {
		for _, batcher := range systems.BatchersFor(router) {
			ends(t, c, systems.System{Router: router, Batcher: batcher, Scaler: "fixed"}, load)
		}
	}
}

// holdsOnlyPinned reports whether only instances of the second app's first stage that hold nothing else hold some
// variant below the floor.
func holdsOnlyPinned(c *simtest.Cluster) bool {
	beside, alone := map[serving.VariantID]bool{}, map[serving.VariantID]bool{}
	for _, i := range c.Plan.Instances {
		if i.Stage != c.Spec.Apps[1].Stages[0] {
			continue
		}
		held := alone
		for _, v := range i.Variants {
			if !c.Spec.BelowFloor(v.Variant) {
				held = beside
			}
		}
		for _, v := range i.Variants {
			held[v.Variant] = true
		}
	}
	for v := range alone {
		if !beside[v] {
			return true
		}
	}
	return false
}

// ends runs a load and fails unless every query ends.
func ends(t *testing.T, c *simtest.Cluster, system systems.System, load []workload.Arrival, cancels ...Cancel) {
	t.Helper()
	e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: believing{c.Profile}, Initial: c.Plan, Warm: true, Planner: c.Planner,
		Source: workload.FromSlice(load), Cancels: cancels, Check: true, Limit: serving.Time(10 * time.Minute),
	}); err != nil {
		t.Errorf("%s+%s: %v", system.Router, system.Batcher, err)
	}
}
