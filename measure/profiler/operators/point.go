package operators

import "github.com/sluice-serving/sluice/measure/profiler"

// Safe is a prediction with the offset on it, for plans.
func (p *Prediction) Safe() float64 { return p.Sequential.Typical * (1 + Offset) }

// Point is a prediction as a point of a profile file. A prediction has no distribution: all its percentiles are one
// number, with the offset that keeps it on the safe side.
func (p *Prediction) Point(variant, device string) profiler.Point {
	us := p.Safe()
	return profiler.Point{Variant: variant, DeviceType: device, Batch: p.Batch, Concurrency: 1,
		Samples: max(1, p.Sequential.Runs),
		Mean:    us, P50: us, P90: us, P95: us, P99: us}
}
