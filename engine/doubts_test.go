package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// unsure is a cluster of one worker with a small variant that is right in 0.8 of all cases and a large one that is in
// 0.95: of the half of the queries of which the small one is sure both are right in 0.98.
func unsure() (*serving.Spec, *static.Planner) {
	spec := simtest.Uniform(1, time.Millisecond, time.Millisecond, 100*time.Millisecond, 8).Spec
	spec.Variants[0].Accuracy = 0.8
	spec.Variants = append(spec.Variants, serving.Variant{Name: "large", Accuracy: 0.95, MaxBatch: 8})
	spec.Stages[0].Variants = []serving.VariantID{0, 1}
	spec.Stages[0].Confidences = []serving.Confidence{{Variant: 0, Bins: []serving.ConfidenceBin{
		{From: 0, Share: 0.5, Accuracy: 0.62, Others: []serving.VariantAccuracy{{Variant: 1, Accuracy: 0.92}}},
		{From: 0.5, Share: 0.5, Accuracy: 0.98, Others: []serving.VariantAccuracy{{Variant: 1, Accuracy: 0.98}}},
	}}}
	return spec, &static.Planner{
		Profile: profile.Constant{Base: time.Millisecond}, Instances: []static.Instance{
			{Variants: []serving.VariantID{0, 1}},
		},
	}
}

// While far more answers are unsure than were when confidence was measured, all of them are final and have the
// variant's accuracy; when they are as measured again, that ends. Chance alone makes no doubts.
func TestConfidencesThatAreNotAsMeasured(t *testing.T) {
	spec, planner := unsure()
	first, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	// The small variant takes 1 ms, the large one 4: a query each 2 ms leaves no time for the large one alone.
	e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(spec, latencies{
		{time.Millisecond / 2, time.Millisecond / 2}, {time.Millisecond, 3 * time.Millisecond},
	},
		planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	below := 0.5 // share of the answers that are unsure
	var said []engine.Reason
	started := make(map[serving.BatchID]engine.Decision)
	sum, n, calibrated := 0.0, 0, 0
	d := &driver{e: e, see: func(x *engine.Decision) {
		switch x.Kind {
		case engine.DoubtConfidence:
			said = append(said, x.Reason)
		case engine.StartBatch:
			b := *x
			b.Tasks = append([]engine.Task(nil), x.Tasks...)
			started[x.Batch] = b
		case engine.EndQuery:
			if x.Outcome == serving.Served {
				sum, n = sum+x.Accuracy, n+1
				if x.Calibrated {
					calibrated++
				}
			}
		}
	}}
	d.in = append(d.in, engine.NewPlanReady(first))
	d.step(0)
	d.tell = func(in *engine.Input) {
		b := started[in.Batch]
		delete(started, in.Batch)
		if in.Kind != engine.BatchDone || b.Variant != 0 {
			return
		}
		for range b.Tasks {
			sure := float32(0.7)
			if rng.Float64() < below {
				sure = 0.3
			}
			in.Confidence = append(in.Confidence, sure)
		}
	}
	send := func(queries int) (accuracy, share float64) {
		sum, n, calibrated = 0, 0, 0
		for range queries {
			d.arrive(serving.Time(2*time.Millisecond), 100*time.Millisecond)
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		return sum / float64(n), float64(calibrated) / float64(n)
	}
	if got, share := send(5000); len(said) > 0 || got < 0.82 || share < 0.9 {
		t.Errorf("as measured: accuracy %.3f, %.2f calibrated, doubts %v: want more than 0.82, and no doubts",
			got, share, said)
	}
	below = 0.9
	send(2000)
	if got, share := send(2000); len(said) != 1 || said[0] != engine.InputsDiffer || share > 0 || got > 0.85 {
		t.Errorf("with other inputs: accuracy %.3f, %.2f calibrated, doubts %v: want one, and the variant's accuracy",
			got, share, said)
	}
	below = 0.5
	send(4000)
	if got, share := send(2000); len(said) != 2 || said[1] != engine.InputsAsMeasured || got < 0.82 || share < 0.9 {
		t.Errorf("as measured again: accuracy %.3f, %.2f calibrated, doubts %v", got, share, said)
	}
}
