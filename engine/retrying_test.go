package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// A query that finds the queue full is told when what waits will have been served, at the rate that the instances are
// believed to have, or given up.
func TestAFullQueueSaysWhenThereWillBePlaces(t *testing.T) {
	for _, x := range []struct {
		late serving.LatePolicy
		slo  time.Duration
		want time.Duration
	}{
		// Two wait, and an instance serves one every 100 ms.
		{serving.ServeLate, time.Second, 200 * time.Millisecond},
		{serving.DropLate, 150 * time.Millisecond, 150 * time.Millisecond},
	} {
		spec := &serving.Spec{
			DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
			Apps: []serving.App{{
				Name: "app", Weight: 1, QueueLimit: 2, Late: x.late, Stages: []serving.StageID{0},
				SLO: serving.SLO{Latency: x.slo, Percentile: 99},
			}},
			Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
			Variants: []serving.Variant{{Name: "v", Accuracy: 1, MaxBatch: 1}},
		}
		e, err := systems.System{Router: "fcfs", Batcher: "single"}.Engine(spec, latencies{{100 * time.Millisecond, 0}},
			plan.Shares|plan.Limits)
		if err != nil {
			t.Fatal(err)
		}
		e.Step(0, []engine.Input{engine.NewPlanReady(&plan.Plan{Instances: []plan.Instance{
			{Slots: 1, Share: 1, Variants: []plan.Variant{{Variant: 0, Limit: 1}}},
		}})})
		e.Step(1, []engine.Input{{
			Kind: engine.InstanceChanged, Instance: 1, Variant: 0, Change: engine.VariantReady,
		}})
		var refused *engine.Decision
		for id := serving.QueryID(1); id <= 4; id++ {
			now := serving.Time(id) + 1
			out := e.Step(now, []engine.Input{engine.NewQueryArrived(serving.Query{
				ID: id, Arrived: now, Deadline: now.Add(x.slo), Items: 1, Variant: serving.None,
			})})
			for k := range out {
				if out[k].Outcome == serving.Refused {
					refused = &out[k]
				}
			}
		}
		if refused == nil || !refused.Retry || refused.RetryAfter != x.want {
			t.Errorf("%v: %+v, want to be asked again after %v", x.late, refused, x.want)
		}
	}
}
