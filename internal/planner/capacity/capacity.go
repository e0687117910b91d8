// Package capacity holds computations that planners share: the rate that a worker carries of a variant, the demand on
// stages, the state of a fleet by a snapshot, and the assignment of counts and bundles to workers.
package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// BatchRule says which batches of a variant may be planned on a worker.
type BatchRule struct {
	// Fraction of the stage's budget that a batch may take; 0 means one half (Proteus §4, "Estimation of throughput
	// capacity").
	Fraction float64
	// Batches are the batch sizes that may be planned; nil means any.
	Batches []int
	// Single allows batches of one item only.
	Single bool
}

const defaultFraction = 0.5

// Capacity returns P of Proteus §4: the rate in items/s of the largest batch that takes less than the fraction of the
// budget within and fits the memory of the device, and that batch in items. A query that has just missed such a batch
// is in time with the next. limit is 0 when there is none, and for a variant below its app's accuracy floor.
func (r BatchRule) Capacity(believed profile.Profile, spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID,
	within time.Duration) (limit int, rate float64) {
	x, device := &spec.Variants[v], &spec.DeviceTypes[d]
	if spec.BelowFloor(v) {
		return 0, 0
	}
	bound := x.MaxBatch
	if r.Single {
		bound = 1
	}
	if device.MemoryBytes > 0 {
		if x.MemoryBytes > device.MemoryBytes {
			return 0, 0
		}
		if x.ItemBytes > 0 {
			bound = min(bound, int((device.MemoryBytes-x.MemoryBytes)/x.ItemBytes))
		}
	}
	fraction := r.Fraction
	if fraction == 0 {
		fraction = defaultFraction
	}
	limit = min(bound, profile.BatchLimit(believed, spec, v, d, 1, time.Duration(fraction*float64(within))-1))
	if r.Batches != nil {
		fits := 0
		for _, b := range r.Batches {
			if b <= limit {
				fits = max(fits, b)
			}
		}
		limit = fits
	}
	if limit <= 0 {
		return 0, 0
	}
	return limit, float64(limit) / believed.Latency(v, d, limit, 1).Seconds()
}
