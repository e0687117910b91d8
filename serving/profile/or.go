package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Or believes First, and Otherwise where First knows nothing.
type Or struct{ First, Otherwise Profile }

// Latency implements Profile.
func (o Or) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if l := o.First.Latency(v, d, items, concurrency); l < Unknown {
		return l
	}
	return o.Otherwise.Latency(v, d, items, concurrency)
}

// Load implements Profile.
func (o Or) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if l := o.First.Load(v, d); l > 0 {
		return l
	}
	return o.Otherwise.Load(v, d)
}

// Learner implements Profile: that of First, or else of Otherwise.
func (o Or) Learner() Learner {
	if l := o.First.Learner(); l != nil {
		return l
	}
	return o.Otherwise.Learner()
}
