package kairos

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Two machines, worked by hand: sizes 1 1 1 2 2, the base machine takes 10 and 20 ms and begins with the largest, the
// auxiliary one takes 30 ms for the smallest and serves no others.
func TestOracleWorked(t *testing.T) {
	m := ec2()
	at := time.Millisecond
	m.Types = m.Types[:2]
	m.Types[0].Latency = []time.Duration{10 * at, 20 * at}
	m.Types[1].Latency = []time.Duration{30 * at, 2 * time.Second}
	o := NewOracle(m, []int{1, 0, 1, 0, 0})
	// Base: 2 until 20, 2 until 40, 1 until 50. Auxiliary: 1 until 30, 1 until 60.
	if got := o.Of(Pool{1, 1}); math.Abs(got-5/0.06) > 1e-9 {
		t.Errorf("%v, want five queries in 60 ms", got)
	}
	if got := o.Of(Pool{1, 0}); math.Abs(got-5/0.07) > 1e-9 {
		t.Errorf("%v, want five queries in 70 ms", got)
	}
	if got := o.Of(Pool{0, 3}); got != 0 {
		t.Errorf("%v without a base machine", got)
	}
	if got := o.Of(Pool{0, 0}); got != 0 {
		t.Errorf("%v without a machine", got)
	}
}

func TestQuantiles(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := someMarket(rng, 1, 1+rng.IntN(20))
		n := 1 + rng.IntN(500)
		q := m.Quantiles(n)
		if len(q) != n || !slices.IsSorted(q) {
			t.Fatalf("seed %d: %d quantiles, want %d in order", seed, len(q), n)
		}
		sum := 0.0
		for c := range m.Mix.Classes() {
			_, share := m.Mix.Class(c)
			sum += share
			at, _ := slices.BinarySearch(q, c+1)
			if math.Abs(float64(at)-sum*float64(n)) > 0.5+1e-6 {
				t.Fatalf("seed %d: %d of %d queries up to class %d, want %v", seed, at, n, c, sum*float64(n))
			}
		}
	}
}

func BenchmarkOracle(b *testing.B) {
	m, _ := thousand()
	o := NewOracle(m, m.Quantiles(10_000))
	b.ReportAllocs()
	for b.Loop() {
		o.Of(Pool{2, 1, 3, 4})
	}
}
