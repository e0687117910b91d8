package workload

import (
	"math"
	"testing"
)

// constant is Constant in a test.
func constant(t testing.TB, rate float64) *Rate {
	t.Helper()
	r, err := Constant(rate)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A rate that cannot be is an error, whoever says it.
func TestConstant(t *testing.T) {
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), 1e300, MaxRate * 1.001} {
		if r, err := Constant(rate); err == nil {
			t.Errorf("%v: %v, want an error", rate, r)
		}
	}
	for _, rate := range []float64{0, 1e-300, 7, MaxRate} {
		if r := constant(t, rate); r.At(5) != rate {
			t.Errorf("%v: is %v", rate, r.At(5))
		}
	}
}
