package truth

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Machines that are off have a factor for each variant on each device type, which all its batch sizes share. The
// factors' logarithms have the deviation that was asked for, and the measurements they are made from do not change.
func TestErring(t *testing.T) {
	const pairs, part = 2000, 0.2
	var m serving.Measurements
	for v := range pairs {
		for n := 1; n <= 2; n++ {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				Variant: serving.VariantID(v / 2), DeviceType: serving.DeviceTypeID(v % 2), Items: n, Concurrency: 1,
				Mean: time.Duration(n) * time.Second, StdDev: 100 * time.Millisecond,
			})
		}
	}
	const seed = 1
	off := Erring(m, part, rand.New(rand.NewPCG(seed, seed)))
	sum, squares := 0.0, 0.0
	for k := range off.Latency {
		if m.Latency[k].Mean != time.Duration(m.Latency[k].Items)*time.Second {
			t.Fatalf("point %d was changed to %v", k, m.Latency[k].Mean)
		}
		one, p := off.Latency[k&^1].Mean.Seconds(), off.Latency[k]
		if math.Abs(p.Mean.Seconds()-float64(p.Items)*one) > 1e-6 || math.Abs(p.StdDev.Seconds()-one/10) > 1e-6 {
			t.Fatalf("point %d: %v with deviation %v, a batch of one takes %v s", k, p.Mean, p.StdDev, one)
		}
		if k%2 == 0 {
			sum, squares = sum+math.Log(one), squares+math.Log(one)*math.Log(one)
		}
	}
	mean, deviation := sum/pairs, math.Sqrt(squares/pairs)
	if math.Abs(mean) > 0.02 || math.Abs(deviation-part) > 0.02 {
		t.Errorf("seed %d: the factors' logarithms have mean %.3f and deviation %.3f, want 0 and %v", seed, mean,
			deviation, part)
	}
}
