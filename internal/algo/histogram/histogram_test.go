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
			if s.Inside() != int64(len(inside)) || s.Outside() != outside {
				t.Fatalf("seed %d at %d: %d inside and %d outside, recorded %d and %d", seed, now, s.Inside(),
					s.Outside(), len(inside), outside)
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

// An encoded histogram that is merged into one with another time origin goes on as if nothing had happened, but for
// where slices end. Bytes that are no histogram are refused and change nothing.
func TestMemory(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		bins, slice, count := 1+rng.IntN(12), int64(10), 2+rng.IntN(5)
		whole, first := New(1, bins, slice, count), New(1, bins, slice, count)
		at := int64(0)
		for range 200 {
			at += rng.Int64N(3)
			value := rng.Int64N(int64(bins) + 2)
			whole.Add(at, value)
			first.Add(at, value)
		}
		at += slice - at%slice // at a slice's beginning both count alike
		b := first.AppendEncoded([]byte("x"), at)
		away := slice * rng.Int64N(int64(count)+1)
		second := New(1, bins, slice, count)
		rest, err := second.MergeEncoded(append(b[1:], 7), 0, away)
		if err != nil || len(rest) != 1 {
			t.Fatalf("seed %d: %v, %v are left", seed, err, rest)
		}
		for now := int64(0); now < 2*slice*int64(count); now += 1 + rng.Int64N(5) {
			value := rng.Int64N(int64(bins) + 2)
			whole.Add(at+away+now, value)
			second.Add(now, value)
			if whole.Inside() != second.Inside() || whole.Outside() != second.Outside() ||
				whole.Quantile(0.7) != second.Quantile(0.7) || math.Abs(whole.Spread()-second.Spread()) > 1e-9 {
				t.Fatalf("seed %d, %d after: %d and %d, without a break %d and %d", seed, now, second.Inside(),
					second.Outside(), whole.Inside(), whole.Outside())
			}
		}
		cut := b[1 : 1+rng.IntN(len(b)-1)]
		third := New(1, bins, slice, count)
		if rest, err := third.MergeEncoded(cut, 0, 0); err == nil && len(cut) > 0 && len(rest) > 0 ||
			third.Inside() > 0 && err != nil {
			t.Fatalf("seed %d: of %d bytes %d were taken: %v", seed, len(b)-1, len(cut), err)
		}
		if small := New(1, 1, slice, 1); bins > 1 && first.Count(1) > 0 {
			if _, err := small.MergeEncoded(b[1:], 0, 0); err == nil {
				continue // what it holds may fit
			}
			if small.Inside()+small.Outside() != 0 {
				t.Fatalf("seed %d: refused and taken", seed)
			}
		}
	}
}
