package profiler

import (
	"math"
	"testing"
)

// The small variant takes 1 ms in batches of 8, the large one 4 ms. The small one is right in 0.8 of its answers; in
// the fifth of which it is unsure it is right in none, and the large one in 0.9.
func TestTradeoffs(t *testing.T) {
	f := &File{
		Points: []Point{
			{Variant: "small", DeviceType: "d", Batch: 1, Concurrency: 1, Mean: 2000},
			{Variant: "small", DeviceType: "d", Batch: 8, Concurrency: 1, Mean: 8000},
			{Variant: "large", DeviceType: "d", Batch: 1, Concurrency: 1, Mean: 4000},
			{Variant: "middle", DeviceType: "d", Batch: 1, Concurrency: 1, Mean: 3500},
			{Variant: "large", DeviceType: "other", Batch: 1, Concurrency: 1, Mean: 1},
		},
		Accuracies: []Accuracy{
			{Variant: "small", Value: 0.8}, {Variant: "large", Value: 0.98}, {Variant: "middle", Value: 0.85},
		},
		Confidences: []Confidence{{Variant: "small", By: "margin", Bins: []ConfidenceBin{
			{Share: 0.2, Others: map[string]float64{"large": 0.9}},
			{From: 0.5, Share: 0.8, Accuracy: 1, Others: map[string]float64{"large": 1}},
		}}},
	}
	// Of one answer each: middle lies under the line from small to large.
	alone := f.Tradeoffs("d", Once)
	if len(alone) != 2 || alone[0].First != "small" || alone[1].First != "large" {
		t.Fatalf("corners %+v, want small and large", alone)
	}
	if got, _ := TimeFor(alone, 0.89); math.Abs(got-2.5) > 1e-9 {
		t.Errorf("%v ms for 0.89, want 2.5", got)
	}
	// 1 + 0.2 x 4 ms for 0.8 + 0.2 x 0.9.
	with := f.Tradeoffs("d", Twice)
	if got, x := TimeFor(with, 0.98); math.Abs(got-1.8) > 1e-9 || x.Second != "large" || math.Abs(x.Share-0.2) > 1e-9 {
		t.Errorf("%v ms for 0.98 by %+v, want 1.8 with large as second", got, x)
	}
	// 0.8 x 1 + 0.2 x 4 ms.
	if got, _ := TimeFor(f.Tradeoffs("d", Foretold), 0.98); math.Abs(got-1.6) > 1e-9 {
		t.Errorf("%v ms for 0.98 if it is known which queries are hard, want 1.6", got)
	}
	if got, x := TimeFor(with, 0.99); !math.IsInf(got, 1) || x != nil {
		t.Errorf("%v ms for more than there is", got)
	}
}
