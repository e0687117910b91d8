package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A run brings what planners plan for: every stage of random graphs gets as many items per query as StageDemands says,
// with joins and stages that are passed over. Exactly as many where every edge sends a whole number of items for each.
// Fractions are carried from query to query, so that less than an item is missing along any edge; joins, which take the
// most of their edges, are left out there.
func TestStagesGetTheDemandPlanned(t *testing.T) {
	stagesGetDemand(t, func(rng *rand.Rand) float64 { return float64(rng.IntN(4)) }, true)
	stagesGetDemand(t, func(rng *rand.Rand) float64 { return []float64{0.4, 0.5, 1, 2.5}[rng.IntN(4)] }, false)
}

func stagesGetDemand(t *testing.T, fanOut func(*rand.Rand) float64, whole bool) {
	t.Helper()
	joins, passed := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := simtest.Random(rng)
		for a := range c.Spec.Apps {
			c.Spec.Apps[a].Late, c.Spec.Apps[a].QueueLimit = serving.ServeLate, 1<<20 // everything is answered
		}
		for s := range c.Spec.Stages {
			for k := range c.Spec.Stages[s].Next {
				c.Spec.Stages[s].Next[k].FanOut = fanOut(rng)
			}
		}
		const queries = 300
		var load []workload.Arrival
		came := make([]float64, len(c.Spec.Apps))
		for k := range queries {
			a := serving.AppID(rng.IntN(len(c.Spec.Apps)))
			came[a]++
			load = append(load, workload.Arrival{
				At: serving.Time(k) * serving.Time(5*time.Millisecond), App: a, Items: 1, Variant: serving.None,
			})
		}
		e, err := systems.System{
			Router: "earliestfinish", Batcher: "greedy",
		}.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(c.Spec.Stages))
		_, err = Run(Config{Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true,
			Source: workload.FromSlice(load), Check: true,
			Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
				for i := range out {
					if d := &out[i]; d.Kind == engine.StartBatch {
						got[d.Stage] += float64(d.Items)
					} else if d.Kind == engine.EndQuery && d.Outcome != serving.Served {
						t.Fatalf("seed %d: query %d %v: %v", seed, d.Query, d.Outcome, d.Reason)
					}
				}
			}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for s, asked := range capacity.StageDemands(c.Spec, nil) {
			want := asked.FanOut * came[asked.App]
			if !whole && afterJoin(c.Spec, serving.StageID(s)) {
				continue
			}
			if whole && got[s] != want || math.Abs(got[s]-want) > mostMissing {
				t.Errorf("seed %d, stage %q: %v items for %v queries, want %v", seed, c.Spec.Stages[s].Name, got[s],
					came[asked.App], want)
			}
			if c.Spec.Stages[s].Joins > 1 && asked.FanOut > 1 {
				joins++
			}
			if asked.FanOut == 0 {
				passed++
			}
		}
	}
	if whole && (joins == 0 || passed == 0) {
		t.Errorf("%d joins of several items, %d stages passed over: the graphs show too little", joins, passed)
	}
}

// mostMissing is how many items fractions leave out at most: less than one along each edge, and each is up to 2.5 items
// at the next stage.
const mostMissing = 1 + 2.5 + 2.5*2.5 + 2.5*2.5*2.5

// afterJoin reports whether a stage, or one before it, is a join.
func afterJoin(spec *serving.Spec, s serving.StageID) bool {
	if spec.Stages[s].Joins > 1 {
		return true
	}
	for from := range spec.Stages {
		for _, e := range spec.Stages[from].Next {
			if e.To == s && afterJoin(spec, serving.StageID(from)) {
				return true
			}
		}
	}
	return false
}
