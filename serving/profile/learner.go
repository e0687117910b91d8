package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Learner is a Profile that learns from the observed times of batches.
type Learner interface {
	Profile
	// Observe notes that a batch of items of v on d, one of concurrency at once, ended well after took. Impossible
	// observations (items < 1 or beyond MaxBatch, concurrency < 1, took <= 0) are ignored.
	Observe(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, took time.Duration)
	// Grow takes up the variants that a grown spec adds (serving.Spec.Grows). measured is the new prior, for all
	// variants; nil for none.
	Grow(spec *serving.Spec, measured Profile, fresh []serving.VariantID)
	// Epoch changes when beliefs have changed so much that plans made before may be bad ones.
	Epoch() uint64
	// Frozen returns what is known now, for planners. It answers Unknown where the Learner guesses, and does not change
	// any more.
	Frozen() Profile
	// Known reports whether the answers for v on d rest on more than a guess.
	Known(v serving.VariantID, d serving.DeviceTypeID) bool
}
