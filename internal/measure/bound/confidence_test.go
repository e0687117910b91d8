package bound

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/serving"
)

// One machine, queries of 10 ms on the small variant (accuracy 0.8) and 40 on the large one (1). At 50 queries/s all
// small ones take half of the time, and 12.5 large ones/s fit into the rest. Without confidences a query is served by
// one of both: x large ones a second with 10 (50 - x) + 40 x = 1000, so 16.7, and utility 0.8 + 0.2/3 = 0.867. If the
// small one is wrong in the fifth of its answers alone of which it is unsure, 10 of the 50 need the large one: 900 ms.
// All are right.
func TestSecondAnswersInTheBound(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, Stages: []serving.StageID{0},
		}},
		Stages: []serving.Stage{{Name: "s", Variants: []serving.VariantID{0, 1}}},
		Variants: []serving.Variant{
			{Name: "small", Accuracy: 0.8, MaxBatch: 1}, {Name: "large", Accuracy: 1, MaxBatch: 1},
		},
	}
	w := Model{Spec: spec, Time: func(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) (time.Duration, bool) {
		return time.Duration(items) * []time.Duration{10 * time.Millisecond, 40 * time.Millisecond}[v], true
	}}
	queries := []Query{{Deadline: serving.Time(time.Second), Items: []float64{1}, Variant: serving.None, Count: 50}}
	bound := func() float64 {
		r, err := Utility(context.Background(), highstest.Solver(t), w, queries, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Utility
	}
	if got := bound(); math.Abs(got-(0.8+0.2/3)) > 1e-6 {
		t.Errorf("without confidences %v, want 0.867", got)
	}
	better := []serving.VariantAccuracy{{Variant: 1, Accuracy: 1}}
	spec.Stages[0].Confidences = []serving.Confidence{{Bins: []serving.ConfidenceBin{
		{From: 0, Share: 0.2, Others: better}, {From: 0.5, Share: 0.8, Accuracy: 1, Others: better},
	}}}
	if got := bound(); math.Abs(got-1) > 1e-6 {
		t.Errorf("with confidences %v, want 1", got)
	}
	// 80 queries/s: 800 ms for first answers, and 5 of the 16 that are unsure have a second one. Large ones alone in
	// their place change nothing: each costs 30 ms more than a first answer, for a fifth of a right one.
	queries[0].Count = 80
	if got, want := bound(), 0.8+5./80; math.Abs(got-want) > 1e-6 {
		t.Errorf("at 80 queries/s %v, want %v", got, want)
	}
}
