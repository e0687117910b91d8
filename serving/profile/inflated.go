package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Inflated is a Profile whose batches take longer by a factor for each stage: the ballooning that was observed. All
// batch sizes and concurrency levels of a stage balloon alike (Scrooge §3.5, footnote 7). Load times stay.
type Inflated struct {
	Profile
	Spec    *serving.Spec
	Factors []float64 // by StageID, > 0; stages beyond its end count as 1
}

// Latency implements Profile.
func (p Inflated) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	l := p.Profile.Latency(v, d, items, concurrency)
	s := int(p.Spec.Variants[v].Stage)
	if s >= len(p.Factors) || p.Factors[s] == 1 || l >= Unknown {
		return l
	}
	return time.Duration(min(float64(l)*p.Factors[s], float64(Unknown)))
}

// MeasuredPoints returns that of the profile that is inflated; see the function MeasuredPoints.
func (p Inflated) MeasuredPoints() MeasuredFunc {
	return MeasuredPoints(p.Profile)
}
