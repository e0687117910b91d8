package truth

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// The computed share of runs within a limit is the one that counting runs gives, for every kind of noise.
func TestWithin(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}, {Name: "never measured"}},
		Variants:    []serving.Variant{{Name: "v", MaxBatch: 8}},
	}
	m := serving.Measurements{Latency: []serving.LatencyPoint{
		{Items: 1, Concurrency: 1, Mean: 10 * time.Millisecond, StdDev: 2 * time.Millisecond}, {
			Items: 8, Concurrency: 1, Mean: 40 * time.Millisecond, StdDev: 4 * time.Millisecond,
		}}}
	for _, noise := range []Noise{Lognormal, Exact, Exponential} {
		x, err := NewTable(spec, m, noise, rand.New(rand.NewPCG(1, uint64(noise))))
		if err != nil {
			t.Fatal(err)
		}
		x.Overhead = time.Millisecond
		for _, items := range []int{1, 4, 8} {
			for _, limit := range []time.Duration{
				0, 9 * time.Millisecond, 11 * time.Millisecond, 25 * time.Millisecond, 45 * time.Millisecond,
			} {
				const n = 20000
				count := 0
				for range n {
					if Sample(x, 0, 0, items, 1) <= limit {
						count++
					}
				}
				got := x.ShareWithin(0, 0, items, limit)
				if want := float64(count) / n; math.Abs(got-want) > 4*math.Sqrt(0.25/n) {
					t.Errorf("noise %d, %d items, limit %v: %.4f, counted %.4f (seed 1)", noise, items, limit, got,
						want)
				}
			}
		}
		if got := x.ShareWithin(0, 1, 1, time.Hour); got != 0 {
			t.Errorf("what was never measured is in time with %v", got)
		}
	}
}
