package monitor

import (
	"slices"
	"testing"
)

// Quantiles are of the last sizes only, ascending, and the last is the largest.
func TestSizeQuantiles(t *testing.T) {
	r := NewRates(1)
	var out [4]int32
	if n := r.SizeQuantiles(0, out[:]); n != 0 {
		t.Errorf("%d quantiles of nothing", n)
	}
	r.AddSize(0, 1)
	if n := r.SizeQuantiles(0, out[:]); n != 1 || out[0] != 1 {
		t.Errorf("%d quantiles, %v, want one of 1", n, out)
	}
	for k := range 3 * quantileSizes {
		r.AddSize(0, int32(1+k%100))
	}
	n := r.SizeQuantiles(0, out[:])
	if n != 4 || !slices.IsSorted(out[:]) || out[3] != 100 || out[1] < 45 || out[1] > 56 {
		t.Errorf("%d quantiles: %v", n, out)
	}
	for range quantileSizes {
		r.AddSize(0, 7)
	}
	if r.SizeQuantiles(0, out[:]); out != [4]int32{7, 7, 7, 7} {
		t.Errorf("quantiles of the last sizes: %v", out)
	}
}
