package monitor

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Dispersion is near 0 for even arrivals, 1 for a Poisson process, also while its rate grows tenfold, and n for clumps
// of n. Little that was seen says nothing.
func TestDispersion(t *testing.T) {
	for _, c := range []struct {
		name      string
		clump     int
		even      bool
		grows     bool
		low, high float64
	}{
		{"even", 1, true, false, 0, 0.1}, {"Poisson", 1, false, false, 0.8, 1.2},
		{"growing", 1, false, true, 0.8, 1.2}, {"clumps of 20", 20, false, false, 14, 26},
	} {
		r, rng := NewRates(1), rand.New(rand.NewPCG(1, 1))
		var now serving.Time
		for end := serving.Time(30 * time.Second); now < end; {
			rate := 100.0
			if c.grows {
				rate = 20 + 180*float64(now)/float64(end)
			}
			gap := 1.0
			if !c.even {
				gap = rng.ExpFloat64()
			}
			now = now.Add(time.Duration(gap * float64(c.clump) / rate * float64(time.Second)))
			for range c.clump {
				r.Add(now, 0)
			}
		}
		if got := r.Dispersion(now, 0); got < c.low || got > c.high {
			t.Errorf("%s: %.2f, want %v to %v", c.name, got, c.low, c.high)
		}
	}
	r := NewRates(1)
	for k := range 40 {
		r.Add(serving.Time(k%2)*serving.Time(time.Second), 0)
	}
	if got := r.Dispersion(serving.Time(10*time.Second), 0); got != 1 {
		t.Errorf("40 queries have a dispersion of %v, want 1: too few", got)
	}
}
