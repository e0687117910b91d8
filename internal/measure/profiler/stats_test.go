package profiler

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMoments(t *testing.T) {
	mean, sd := moments([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(sd-math.Sqrt(32.0/7)) > 1e-12 {
		t.Errorf("mean %v, stddev %v", mean, sd)
	}
	if mean, sd = moments([]float64{3}); mean != 3 || sd != 0 {
		t.Errorf("one sample: %v, %v", mean, sd)
	}
}

func TestMeanWidthAgainstTheTable(t *testing.T) {
	// Student's t at 97.5 % is 2.262 for 9 and 1.984 for 99 degrees of freedom.
	for n, want := range map[int]float64{10: 2.262 / math.Sqrt(10), 100: 1.984 / 10} {
		if got := meanWidth(n, 10, 10); math.Abs(got-want) > 1e-3 {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
	if !math.IsInf(meanWidth(1, 1, 0), 1) || meanWidth(5, 1, 0) != 0 {
		t.Error("one sample tells nothing, equal ones everything")
	}
}

func TestQuantileRanks(t *testing.T) {
	// Known ranks: the median of 10 samples lies between the 2nd and the 9th smallest with 97.9 % (Conover, Practical
	// Nonparametric Statistics). Two-sided bounds of the 95th percentile need 0.95^n <= 0.025, so 72 samples.
	if low, high, ok := quantileRanks(10, 0.5); low != 2 || high != 9 || !ok {
		t.Errorf("median of 10: %d, %d, %t", low, high, ok)
	}
	if _, _, ok := quantileRanks(71, 0.95); ok {
		t.Error("71 samples cannot bound the 95th percentile from above")
	}
	if low, high, ok := quantileRanks(72, 0.95); !ok || high != 72 || low >= 68 {
		t.Errorf("72 samples: %d, %d, %t", low, high, ok)
	}
}

func TestQuantileIntervalCovers(t *testing.T) {
	// The 95th percentile of exponential samples is ln 20. The interval must contain it in at least 95 % of 2,000
	// trials. Their standard error is 0.5 points; four of them are allowed.
	rng := rand.New(rand.NewPCG(1, 2))
	const n, trials = 200, 2000
	low, high, _ := quantileRanks(n, 0.95)
	covered := 0
	for range trials {
		below := 0 // samples below the quantile
		for range n {
			if rng.ExpFloat64() < math.Log(20) {
				below++
			}
		}
		if below >= low && below < high {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.95-0.02 {
		t.Errorf("the interval covered the quantile in %.1f %% of trials", 100*share)
	}
}

func TestQuantileWidth(t *testing.T) {
	same := make([]float64, 100)
	for i := range same {
		same[i] = 7
	}
	if got := quantileWidth(same, 0.95); got != 0 {
		t.Errorf("equal samples have a width of %v", got)
	}
	if !math.IsInf(quantileWidth(same[:50], 0.95), 1) {
		t.Error("50 samples cannot bound the 95th percentile")
	}
}
