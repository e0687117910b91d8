package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// A plan with other slots reuses an instance that was built for as many, and launches a new one otherwise.
func TestSlotsWithoutALoad(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 10,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "s", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 1, MaxBatch: 4}},
	}
	e, err := engine.New(engine.Config{
		Spec: spec, Profile: profile.Constant{Base: 10 * time.Millisecond}, Router: &route.ShortestQueue{},
		Batcher: batch.Greedy{}, Scaler: scale.Fixed{},
	})
	if err != nil {
		t.Fatal(err)
	}
	with := func(at serving.Time, slots, built int) (launched int) {
		in := []engine.Input{
			{
				Kind: engine.PlanReady, Plan: &plan.Plan{
					Instances: []plan.Instance{
						{Slots: slots, Built: built, Share: 1, Variants: []plan.Variant{{Limit: 1}}},
					},
				},
			},
		}
		for _, d := range e.Step(at, in) {
			if d.Kind == engine.LaunchInstance {
				launched++
				if d.Launch.Slots != max(slots, built) {
					t.Errorf("launched with %d slots, want %d", d.Launch.Slots, max(slots, built))
				}
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		return launched
	}
	if n := with(0, 2, 3); n != 1 {
		t.Fatalf("%d launches of the first plan", n)
	}
	for k, c := range []struct{ slots, launches int }{{3, 0}, {1, 0}, {4, 1}} {
		if n := with(serving.Time(k+1), c.slots, 0); n != c.launches {
			t.Errorf("%d launches for %d slots, want %d", n, c.slots, c.launches)
		}
	}
}
