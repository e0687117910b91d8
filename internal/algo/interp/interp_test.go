package interp

import "testing"

func TestLinear(t *testing.T) {
	xs, ys := []float64{1, 2, 4, 8}, []float64{10, 12, 20, 18}
	for _, c := range []struct {
		x, y     float64
		measured bool
	}{
		{0.5, 10, false}, // before the first point the first value holds
		{1, 10, true},
		{3, 16, false}, // halfway between 12 and 20
		{8, 18, true},
		{16, 18, false}, // the last slope is negative: never extrapolated downwards
	} {
		if y, m := Linear(xs, ys, c.x); y != c.y || m != c.measured {
			t.Errorf("Linear(%v) = %v, %v, want %v, %v", c.x, y, m, c.y, c.measured)
		}
	}
	if y, _ := Linear([]float64{2}, []float64{6}, 5); y != 15 {
		t.Errorf("one point: %v, want proportional growth to 15", y)
	}
	if y, _ := Linear([]float64{2, 4}, []float64{6, 10}, 6); y != 14 {
		t.Errorf("beyond the last point: %v, want the last slope continued to 14", y)
	}
}
