package serving

import (
	"math"
	"testing"
)

// With variants of at least the accuracy that a target asks of every stage, an app keeps its target.
func TestAccuracyForTargetKeepsIt(t *testing.T) {
	spec := &Spec{
		Apps: []App{{Stages: []StageID{0, 1}, AccuracyTarget: 0.72}, {Stages: []StageID{2}, Floor: 0.6}},
		Stages: []Stage{
			{Variants: []VariantID{0, 1}}, {Variants: []VariantID{2}}, {App: 1, Variants: []VariantID{3}},
		},
		Variants: []Variant{{Accuracy: 0.9}, {Accuracy: 0.8}, {Stage: 1, Accuracy: 0.95}, {Stage: 2, Accuracy: 0.7}},
	}
	if best := spec.BestAccuracy(0); math.Abs(best-0.855) > 1e-12 {
		t.Errorf("the best answers have %v, want 0.9 x 0.95", best)
	}
	if got := spec.AccuracyForTarget(0) * spec.AccuracyForTarget(1); math.Abs(got-0.72) > 1e-6 {
		t.Errorf("the least accuracies give %v, want the target", got)
	}
	if got := spec.AccuracyForTarget(2); got != 0.6 {
		t.Errorf("without a target %v, want the floor", got)
	}
	spec.Apps[0].Floor = 0.85
	if got := spec.AccuracyForTarget(0); got != 0.85 {
		t.Errorf("a floor above it gives %v", got)
	}
	for _, tenure := range []Tenure{TenureUnstated, Owned, Rented} {
		if got := ParseTenure(tenure.String()); got != tenure {
			t.Errorf("%q is read as %v", tenure, got)
		}
	}
}
