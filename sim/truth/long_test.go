package truth

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// A batch that is padded to a length takes what its stretch says, in the mean and in the share that is within a time.
func TestLongBatches(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Variants: []serving.Variant{{Name: "v", MaxBatch: 8}},
	}
	x, err := NewTable(spec, serving.Measurements{Latency: []serving.LatencyPoint{
		{Items: 1, Concurrency: 1, Mean: 10 * time.Millisecond, StdDev: 2 * time.Millisecond},
		{Items: 8, Concurrency: 1, Mean: 40 * time.Millisecond, StdDev: 4 * time.Millisecond},
	}}, Lognormal, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	x.Overhead = time.Millisecond
	const base = 3 * time.Millisecond
	x.Stretch = func(_ serving.VariantID, _ serving.DeviceTypeID, took time.Duration, length int32) time.Duration {
		return base + time.Duration(float64(length)/64*float64(took-base))
	}
	for _, length := range []int32{16, 64, 300} {
		const n = 20000
		sum, within := 0.0, 0
		mean, _ := x.LongMean(0, 0, 4, 1, length)
		limit := mean + mean/20
		for range n {
			took := x.ServiceOf(0, 0, []serving.Run{{Items: 4, Length: length}}, 1, x.Draw(0, 0, 4, 1))
			if sum += float64(took); took <= limit {
				within++
			}
		}
		if off := sum/n/float64(mean) - 1; math.Abs(off) > 0.01 {
			t.Errorf("length %d: batches take %.4f of their mean (seed 1)", length, 1+off)
		}
		if got, want := x.LongChance(0, 0, 4, 1, limit, length), float64(within)/n; math.Abs(got-want) > 0.015 {
			t.Errorf("length %d: %.4f are within %v, counted %.4f (seed 1)", length, got, limit, want)
		}
	}
}
