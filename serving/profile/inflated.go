package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Inflated is a Profile whose batches take longer by a factor of each stage's: the ballooning that was observed. All
// batch sizes and concurrency levels balloon alike (Scrooge §3.5, footnote 7). Loads take as long as before.
type Inflated struct {
	Profile
	Spec    *serving.Spec
	Factors []float64 // by StageID, > 0; 1 for stages beyond its end
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

// Tells is for the function Tells.
func (p Inflated) MeasuredPoints() func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
	return MeasuredPoints(p.Profile)
}
