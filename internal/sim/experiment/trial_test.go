package experiment

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// A trial finds the pool that carries more, whatever it is placed at and whatever was estimated, and has measured
// scatter: a type that is often slow loses to one with the same mean.
func TestTrialsFindTheBest(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "steady", PricePerHour: 1}, {Name: "shaky", PricePerHour: 1}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: 50 * time.Millisecond, Percentile: 99}, Late: serving.ServeLate,
			Weight: 1, Mix: serving.Mix{Sizes: []int32{1}, Shares: []float64{1}}, QueueLimit: 1 << 20,
			Stages: []serving.StageID{0},
		}},
		Stages:   []serving.Stage{{Name: "a", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "a", Accuracy: 1, MaxBatch: 1}},
	}
	point := func(d serving.DeviceTypeID, deviation time.Duration) serving.LatencyPoint {
		return serving.LatencyPoint{
			DeviceType: d, Items: 1, Concurrency: 1, Mean: 20 * time.Millisecond, StdDev: deviation,
		}
	}
	measured := serving.Measurements{Latency: []serving.LatencyPoint{point(0, 0), point(1, 15*time.Millisecond)}}
	beliefs, err := profile.NewTable(spec, measured, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	m, err := kairos.NewMarket(beliefs, spec, 0, &spec.Apps[0].Mix, nil, spec.Apps[0].SLO.Latency)
	if err != nil {
		t.Fatal(err)
	}
	system, err := systems.Get("kairos-fluid")
	if err != nil {
		t.Fatal(err)
	}
	trials := Trials{System: system, Known: plan.Known{Measurements: measured, Profile: beliefs}}
	for _, c := range []struct {
		name  string
		pools []kairos.Pool
		best  int
	}{
		{"the larger", []kairos.Pool{{2, 0}, {4, 0}, {3, 0}}, 1}, {"the steadier", []kairos.Pool{{0, 3}, {3, 0}}, 1},
		{"the first", []kairos.Pool{{3, 0}, {0, 3}, {1, 1}}, 0},
	} {
		contest := kairos.Contest{Spec: spec, Market: m, Late: 0.01}
		for _, p := range c.pools {
			contest.Pools = append(contest.Pools, kairos.Estimated{Ranked: kairos.Ranked{Pool: p}, Rate: 100})
		}
		if best, err := trials.Best(t.Context(), contest); err != nil || best != c.best {
			t.Errorf("%s: %d of %v, %v; want %d", c.name, best, c.pools, err, c.best)
		}
	}
}
