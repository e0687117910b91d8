package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSweepsAgreeWithTheirPortableForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		n := 1 + rng.IntN(70)
		x, y := fill(rng, make([]float32, n)), fill(rng, make([]float32, n))
		a, b, c := rng.Float32()-0.5, rng.Float32()-0.5, rng.Float32()-0.5
		near := func(what string, got, want []float32) {
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-4 {
					t.Fatalf("%s of %d: element %d is %v, want %v", what, n, i, got[i], want[i])
				}
			}
		}
		s, d := dots(x, y)
		s1, d1 := dotsGo(x, y)
		near("dots", []float32{s, d}, []float32{s1, d1})

		got, want := make([]float32, n), make([]float32, n)
		shift(got, x, a, b)
		shiftGo(want, x, a, b)
		near("shift", got, want)

		dy := append([]float32(nil), y...)
		rectify(want, dy)
		for i, v := range want {
			if keep := v > 0; keep && dy[i] != y[i] || !keep && dy[i] != 0 {
				t.Fatalf("rectify of %d: gradient %v at %v becomes %v", n, y[i], v, dy[i])
			}
		}

		got, want = append([]float32(nil), x...), append([]float32(nil), x...)
		combine(got, y, a, b, c)
		combineGo(want, y, a, b, c)
		near("combine", got, want)
	}
}
