package scale

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Against all values seen: never less than the maximum of the span, never more than that of one slice more.
func TestSlidingMaxAgainstAll(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		span := time.Duration(1+rng.IntN(300)) * time.Second
		slice := span / (peakSlices - 1)
		var p slidingMax
		var at []serving.Time
		var values []float64
		now := serving.Time(0)
		for range 300 {
			now = now.Add(time.Duration(rng.Int64N(int64(span) / (1 + rng.Int64N(100)))))
			at, values = append(at, now), append(values, rng.ExpFloat64())
			got := p.highest(now, span, values[len(values)-1])
			least, most := 0.0, 0.0
			for k, v := range values {
				if now.Sub(at[k]) <= span {
					least = max(least, v)
				}
				if now.Sub(at[k]) <= span+slice {
					most = max(most, v)
				}
			}
			if got < least || got > most {
				t.Fatalf("seed %d, at %v: %v, want %v to %v", seed, now, got, least, most)
			}
		}
	}
}
