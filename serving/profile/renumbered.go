package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Renumbered is a Profile with other identifiers of variants, such as those of a serving.Open.
type Renumbered struct {
	Profile
	Variants []serving.VariantID // by new identifier, the identifier in Profile
}

// Latency implements Profile.
func (r Renumbered) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return r.Profile.Latency(r.Variants[v], d, items, concurrency)
}

// Load implements Profile.
func (r Renumbered) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return r.Profile.Load(r.Variants[v], d)
}

// Learner implements Profile: only planners get renumbered profiles, and planners observe no batches.
func (r Renumbered) Learner() Learner { return nil }
