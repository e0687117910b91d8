package nn

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMovesAgreeWithTheirPortableForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		n := 1 + rng.IntN(40)
		top, low := fill(rng, make([]float32, 2*n)), fill(rng, make([]float32, 2*n))
		got, want := make([]float32, n), make([]float32, n)
		maxPairs(got, top, low)
		maxPairsGo(want, top, low)
		for i := range want {
			if got[i] != want[i] || want[i] != max(top[2*i], top[2*i+1], low[2*i], low[2*i+1]) {
				t.Fatalf("%d pairs: element %d is %v, want %v", n, i, got[i], want[i])
			}
		}
		rows, w := 1+rng.IntN(9), 1+rng.IntN(40)
		ld := w + rng.IntN(5)
		from := fill(rng, make([]float32, rows*ld))
		a, b := make([]float32, rows*w), make([]float32, rows*w)
		copyRows(a, from, rows, w, ld)
		copyRowsGo(b, from, rows, w, ld)
		if !slices.Equal(a, b) || a[len(a)-1] != from[(rows-1)*ld+w-1] {
			t.Fatalf("%d rows of %d from %d: got %v, want %v", rows, w, ld, a, b)
		}
	}
}
