package telemetry

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// The gauges show how many items batches send, and how long they take relative to the time believed without ballooning,
// also when the engine expects ballooning. Kept instances are counted apart from ready ones.
func TestComplexityGauges(t *testing.T) {
	spec := &serving.Spec{
		Apps: []serving.App{{Name: "app", Stages: []serving.StageID{0, 1}}},
		Stages: []serving.Stage{
			{Name: "detect", Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 2}}}, {
				Name: "read", Variants: []serving.VariantID{1}, Joins: 1,
			},
		},
		Variants: []serving.Variant{
			{Name: "d", MaxBatch: 4}, {Name: "r", Stage: 1, MaxBatch: 4},
		},
	}
	telemetry := viewing(spec, Options{})
	shown := func() (scaling, ballooning float64) {
		return value(telemetry.content.scaling.WithLabelValues("app", "detect", "read")),
			value(telemetry.content.ballooned.WithLabelValues("app", "detect"))
	}
	telemetry.log.Observe(0, []engine.Input{engine.NewQueryArrived(serving.Query{ID: 1, Items: 1})}, nil)
	if s, b := shown(); s != 2 || b != 1 {
		t.Errorf("before anything ran: %v and %v, want what is configured and 1", s, b)
	}
	batch, now := serving.BatchID(0), serving.Time(0)
	run := func(n int, expected time.Duration) {
		for range n {
			batch++
			telemetry.log.Observe(now, nil, []engine.Decision{
				{
					Kind: engine.StartBatch, Batch: batch, Instance: 1, Expected: expected, Items: 2,
					Tasks: []engine.Task{{Query: 1, Items: 1}, {Query: 2, Items: 1}},
				},
			})
			now = now.Add(50 * time.Millisecond)
			telemetry.log.Observe(now, []engine.Input{
				{
					Kind: engine.BatchDone, Batch: batch, Instance: 1, Took: 30 * time.Millisecond,
					Emitted: []int32{3, 7},
				},
			}, nil)
		}
	}
	telemetry.log.Observe(0, nil,
		[]engine.Decision{{Kind: engine.LaunchInstance, Instance: 1, Launch: &engine.Launch{}}})
	telemetry.log.Observe(0,
		[]engine.Input{{Kind: engine.InstanceChanged, Instance: 1, Change: engine.VariantReady}}, nil)
	run(100, 10*time.Millisecond)
	if s, b := shown(); s != 5 || b < 2.99 || b > 3.01 {
		t.Errorf("%v and %v, want 5 and 3", s, b)
	}
	telemetry.log.Observe(now, nil, []engine.Decision{
		{
			Kind:    engine.RequestPlan,
			Request: &plan.Request{Snapshot: &fleet.Snapshot{Seq: 1}, Ballooning: []float64{3, 1}},
		},
	})
	run(300, 30*time.Millisecond)
	if s, b := shown(); s != 5 || b < 2.99 || b > 3.01 {
		t.Errorf("once it is expected: %v and %v, want 5 and 3", s, b)
	}
	counts := func() [2]float64 {
		return [2]float64{
			value(telemetry.metrics.instances.gauge.WithLabelValues("app", "ready")),
			value(telemetry.metrics.instances.gauge.WithLabelValues("app", "kept")),
		}
	}
	for _, c := range []struct {
		kind engine.DecisionKind
		want [2]float64
	}{
		{engine.KeepInstance, [2]float64{0, 1}}, {engine.ResumeInstance, [2]float64{1, 0}},
		{engine.KeepInstance, [2]float64{0, 1}}, {engine.StopInstance, [2]float64{0, 0}},
	} {
		telemetry.log.Observe(now, nil, []engine.Decision{{Kind: c.kind, Instance: 1}})
		if got := counts(); got != c.want {
			t.Errorf("after %v: ready and kept are %v, want %v", c.kind, got, c.want)
		}
	}
}
