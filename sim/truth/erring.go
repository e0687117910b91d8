package truth

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Erring returns measurements of machines that are not quite what was measured: the times of each variant on each
// device type are off by a factor of their own. The factors' logarithms are normal with mean 0 and standard deviation
// part. m is not changed.
func Erring(m serving.Measurements, part float64, rng *rand.Rand) serving.Measurements {
	type pair struct {
		v serving.VariantID
		d serving.DeviceTypeID
	}
	factors := make(map[pair]float64)
	m.Latency = slices.Clone(m.Latency)
	for k := range m.Latency { // in the order of the points, so that a seed gives the same factors
		p := &m.Latency[k]
		at := pair{p.Variant, p.DeviceType}
		if factors[at] == 0 {
			factors[at] = math.Exp(part * rng.NormFloat64())
		}
		// what a Table reads of a point
		p.Mean = time.Duration(float64(p.Mean) * factors[at])
		p.StdDev = time.Duration(float64(p.StdDev) * factors[at])
	}
	return m
}
