package operators

import "github.com/sluice-serving/sluice/internal/measure/profiler"

// Safe returns the prediction with the offset, for plans, in microseconds.
func (p *Prediction) Safe() float64 { return p.Sequential.Typical * (1 + Offset) }

// Point returns the prediction as a point of a profile. A prediction has no distribution, so all percentiles are the
// same number, with the offset.
func (p *Prediction) Point(variant, device string) profiler.Point {
	us := p.Safe()
	return profiler.Point{Variant: variant, DeviceType: device, Batch: p.Batch, Concurrency: 1,
		Samples: max(1, p.Sequential.Runs),
		Mean:    us, P50: us, P90: us, P95: us, P99: us}
}
