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

// Changes tells when a variant turns broken and when it may be tried again, and stays while queries come and go: what
// is kept of an engine's answers is then still right.
func TestChangesTellOfBrokenVariants(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 10,
			Stages: []serving.StageID{0},
		}},
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
	e.Step(0, []engine.Input{engine.NewPlanReady(&plan.Plan{
		Instances: []plan.Instance{{Slots: 1, Share: 1, Variants: []plan.Variant{{Limit: 1}}}},
	})})
	changes, broken := e.Changes(), e.Broken(0)
	turned := 0
	now := serving.Time(0)
	for range 200 {
		now = now.Add(5 * time.Second)
		var in []engine.Input
		for _, i := range e.Fleet().Live() {
			if now < serving.Time(time.Minute) {
				in = append(in, engine.NewLoadFailed(i.ID(), 0))
			}
		}
		e.Step(now, in)
		if e.Broken(0) != broken {
			turned++
			if e.Changes() == changes {
				t.Errorf("at %v: broken turns to %t, and Changes stays", now, e.Broken(0))
			}
		}
		changes, broken = e.Changes(), e.Broken(0)
	}
	if turned != 2 {
		t.Errorf("it turned %d times, want broken and then not", turned)
	}
	for id := serving.QueryID(1); id < 20; id++ {
		now = now.Add(time.Second)
		e.Step(now, []engine.Input{engine.NewQueryArrived(serving.Query{
			ID: id, Arrived: now, Deadline: now.Add(time.Second), Items: 1, Variant: serving.None,
		})})
	}
	if e.Changes() != changes {
		t.Error("queries change what is ready")
	}
}
