package runner

import (
	"math"
	"testing"
	"time"
)

// A run of a quarter of a minute has seen a quarter of it. Where runs follow each other twice a minute, what the first
// was told to expect is halved by each: a burst of 20/s is 0.8/s after five of them, where there are 0.2/s.
func TestWhatIsExpectedIsForgotten(t *testing.T) {
	for _, x := range []struct {
		seen, expected float64
		age            time.Duration
		want           float64
	}{
		{math.NaN(), 3, 0, 3}, {4, 8, 15 * time.Second, 7}, {4, 8, time.Minute, 4}, {4, 8, time.Hour, 4},
	} {
		if got := soFar(x.seen, x.expected, x.age); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%+v: %v", x, got)
		}
	}
	rate := 20.0
	for range 5 {
		rate = soFar(0.2, rate, 30*time.Second)
	}
	if math.Abs(rate-0.81875) > 1e-9 {
		t.Errorf("after five runs %v are expected, want 0.819", rate)
	}
}
