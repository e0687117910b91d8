package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func fill(rng *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func TestGemmAgainstTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m, n, k := 1+rng.IntN(21), 1+rng.IntN(50), 1+rng.IntN(40)
		lda, ldb, ldc := k+rng.IntN(5), n+rng.IntN(5), n+rng.IntN(5)
		a, b, c := fill(rng, make([]float32, m*lda)), fill(rng, make([]float32, k*ldb)),
			fill(rng, make([]float32, m*ldc))
		add := rng.IntN(2) == 0
		want := append([]float32(nil), c...)
		for i := range m {
			for j := range n {
				var s float64
				for p := range k {
					s += float64(a[i*lda+p]) * float64(b[p*ldb+j])
				}
				if add {
					s += float64(c[i*ldc+j])
				}
				want[i*ldc+j] = float32(s)
			}
		}
		gemm(m, n, k, a, lda, b, ldb, c, ldc, add)
		for i := range want {
			if math.Abs(float64(c[i]-want[i])) > 1e-4 {
				t.Fatalf("%dx%dx%d add=%v: element %d is %v, want %v", m, n, k, add, i, c[i], want[i])
			}
		}
	}
}

func TestBlockPortableFormAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, add := range []bool{false, true} {
		a, b := fill(rng, make([]float32, 4*9)), fill(rng, make([]float32, 9*20))
		c := fill(rng, make([]float32, 4*18))
		d := append([]float32(nil), c...)
		block4x16(9, a, 9, b, 20, c, 18, add)
		block4x16Go(9, a, 9, b, 20, d, 18, add)
		for i := range c {
			if math.Abs(float64(c[i]-d[i])) > 1e-5 {
				t.Fatalf("add=%v: element %d is %v and %v", add, i, c[i], d[i])
			}
		}
	}
}

func TestWideRegistersChangeNothing(t *testing.T) {
	if !haveWide {
		t.Skip("this processor has no wide registers")
	}
	defer func() { haveWide = true }()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		m, n, k := 1+rng.IntN(30), 1+rng.IntN(100), 1+rng.IntN(40)
		a, b, c := fill(rng, make([]float32, m*k)), fill(rng, make([]float32, k*n)), fill(rng, make([]float32, m*n))
		d := append([]float32(nil), c...)
		add := rng.IntN(2) == 0
		haveWide = true
		gemm(m, n, k, a, k, b, n, c, n, add)
		haveWide = false
		gemm(m, n, k, a, k, b, n, d, n, add)
		for i := range c {
			if c[i] != d[i] {
				t.Fatalf("%dx%dx%d add=%v: element %d is %v and %v", m, n, k, add, i, c[i], d[i])
			}
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{16, 1024, 25}, {32, 256, 144}, {64, 64, 288}, {144, 32, 256}} {
		m, n, k := s[0], s[1], s[2]
		x, y, z := fill(rng, make([]float32, m*k)), fill(rng, make([]float32, k*(n+16))), make([]float32, m*n)
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			for b.Loop() {
				gemm(m, n, k, x, k, y, n+16, z, n, false)
			}
			b.ReportMetric(float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

func BenchmarkBlockPortable(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const k = 144
	x, y, z := fill(rng, make([]float32, 4*k)), fill(rng, make([]float32, 16*k)), make([]float32, 64)
	for b.Loop() {
		block4x16Go(k, x, k, y, 16, z, 16, false)
	}
	b.ReportMetric(64*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
}
