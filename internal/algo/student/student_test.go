package student

import (
	"math"
	"testing"
)

func TestMargin(t *testing.T) {
	// Mean 3, deviation sqrt(2.5); the 95th percentile of t with four degrees of freedom is 2.1318 in every table.
	mean, margin := Margin([]float64{1, 2, 3, 4, 5}, 0.05)
	if want := 2.1318 * math.Sqrt(2.5/5); math.Abs(mean-3) > 1e-12 || math.Abs(margin-want) > 1e-4 {
		t.Errorf("%v and %v, want 3 and %v", mean, margin, want)
	}
	if mean, margin := Margin([]float64{7}, 0.05); mean != 7 || !math.IsInf(margin, 1) {
		t.Errorf("one value: %v and %v", mean, margin)
	}
}
