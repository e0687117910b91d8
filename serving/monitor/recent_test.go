package monitor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// The ring against a count of all arrivals, through bursts and silences.
func TestRecent(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		r := NewRates(1)
		if got := r.Recent(0, 0); !math.IsInf(got, 1) {
			t.Fatalf("at the very start: %v", got)
		}
		var all []serving.Time
		now := serving.Time(1)
		for range 2000 {
			gap := rng.ExpFloat64() * 1e6
			if rng.IntN(300) == 0 {
				gap *= 1000
			}
			now += serving.Time(gap)
			if rng.IntN(3) > 0 {
				r.Add(now, 0)
				all = append(all, now)
			}
			n := 0
			for _, at := range all {
				if at > now-serving.Time(RecentWindow) {
					n++
				}
			}
			if got, want := r.Recent(now, 0), float64(n)/min(now, serving.Time(RecentWindow)).Seconds(); got != want {
				t.Fatalf("seed %d at %v: %v, want %v", seed, now, got, want)
			}
		}
	}
}
