package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Against all values recorded and counted anew, through silences of many slices.
func TestAgainstRecorded(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		width, bins, slice, count := 1+rng.Int64N(20), 1+rng.IntN(12), 1+rng.Int64N(30), 1+rng.IntN(6)
		s := New(width, bins, slice, count)
		type one struct{ at, value int64 }
		var all []one
		now := rng.Int64N(100)
		for range 400 {
			now += rng.Int64N(slice)
			if rng.IntN(50) == 0 {
				now += rng.Int64N(10 * slice * int64(count))
			}
			if rng.IntN(4) > 0 {
				all = append(all, one{now, rng.Int64N(width*int64(bins) + 2*width)})
				s.Add(now, all[len(all)-1].value)
			} else {
				s.Advance(now)
			}
			var inside []int
			outside := int64(0)
			counts := make([]float64, bins)
			for _, x := range all {
				if x.at/slice <= now/slice-int64(count) {
					continue
				}
				if bin := int(x.value / width); bin < bins {
					inside = append(inside, bin)
					counts[bin]++
				} else {
					outside++
				}
			}
			slices.Sort(inside)
			if s.Inside() != int64(len(inside)) || s.Outside() != outside || s.Bins() != bins {
				t.Fatalf("seed %d at %d: %d inside and %d outside, recorded %d and %d", seed, now, s.Inside(), s.Outside(), len(inside), outside)
			}
			mean, squares := float64(len(inside))/float64(bins), 0.0
			for bin, c := range counts {
				squares += (c - mean) * (c - mean) / float64(bins)
				if s.Count(bin) != int64(c) {
					t.Fatalf("seed %d at %d: bin %d holds %d, recorded %v", seed, now, bin, s.Count(bin), c)
				}
			}
			if len(inside) == 0 {
				if s.Quantile(0.5) != -1 || s.Spread() != 0 {
					t.Fatalf("seed %d: empty, and quantile %d, spread %v", seed, s.Quantile(0.5), s.Spread())
				}
				continue
			}
			if want := math.Sqrt(squares) / mean; math.Abs(s.Spread()-want) > 1e-6 {
				t.Fatalf("seed %d at %d: spread %v, by definition %v", seed, now, s.Spread(), want)
			}
			for _, p := range []float64{0, 0.05, 0.5, 0.99, 1} {
				want := inside[max(int(math.Ceil(p*float64(len(inside))-1e-9)), 1)-1]
				if got := s.Quantile(p); got != want {
					t.Fatalf("seed %d at %d: quantile %v is bin %d, recorded %d", seed, now, p, got, want)
				}
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	s := New(60e9, 240, 3600e9, 24)
	rng := rand.New(rand.NewPCG(1, 1))
	at := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		gap := int64(rng.ExpFloat64() * 60e9)
		at += gap
		s.Add(at, gap)
	}
}
