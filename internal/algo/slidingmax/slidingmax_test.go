package slidingmax

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Against all values seen: never less than the maximum of the span, never more than that of one slice more.
func TestAgainstAll(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		span := time.Duration(1+rng.IntN(300)) * time.Second
		slice := span / (slices - 1)
		var p Max
		var at []time.Duration
		var values []float64
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(rng.Int64N(int64(span) / (1 + rng.Int64N(100))))
			at, values = append(at, now), append(values, rng.ExpFloat64())
			got := p.Highest(int64(now), int64(span), values[len(values)-1])
			least, most := 0.0, 0.0
			for k, v := range values {
				if now-at[k] <= span {
					least = max(least, v)
				}
				if now-at[k] <= span+slice {
					most = max(most, v)
				}
			}
			if got < least || got > most {
				t.Fatalf("seed %d, at %v: %v, want %v to %v", seed, now, got, least, most)
			}
		}
	}
}
