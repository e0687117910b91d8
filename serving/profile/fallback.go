package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Fallback answers with Primary, and with Secondary where Primary knows nothing.
type Fallback struct{ Primary, Secondary Profile }

// Latency implements Profile. Primary knows nothing where it answers Unknown.
func (o Fallback) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if l := o.Primary.Latency(v, d, items, concurrency); l < Unknown {
		return l
	}
	return o.Secondary.Latency(v, d, items, concurrency)
}

// Load implements Profile. Primary knows nothing where it answers 0.
func (o Fallback) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if l := o.Primary.Load(v, d); l > 0 {
		return l
	}
	return o.Secondary.Load(v, d)
}

// Learner implements Profile: that of Primary, or else of Secondary.
func (o Fallback) Learner() Learner {
	if l := o.Primary.Learner(); l != nil {
		return l
	}
	return o.Secondary.Learner()
}
