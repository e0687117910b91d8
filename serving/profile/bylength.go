package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// ByLength is a Profile of queries that differ in length. Latency, which knows no lengths, answers for those that come
// in the mean; At for a length. It stands around all other profiles.
type ByLength struct {
	Profile
	Stretches *Stretches // not nil
	// Factors are the mean stretches of the items that come, by variant*devices + device type; nil where they have the
	// length of the measured points. They must not change any more.
	Factors []float64
}

// Latency implements Profile.
func (p *ByLength) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	reference := p.Profile.Latency(v, d, items, concurrency)
	if at := p.Stretches.at(v, d); at < len(p.Factors) && p.Factors[at] != 1 {
		return p.Stretches.stretched(at, reference, p.Factors[at])
	}
	return reference
}

// At returns the believed time of a batch that is padded to a length. One that is not known counts as the mean.
func (p *ByLength) At(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	length int32) time.Duration {
	if length <= 0 {
		return p.Latency(v, d, items, concurrency)
	}
	return p.Stretches.Latency(v, d, p.Profile.Latency(v, d, items, concurrency), length)
}

// Stretch returns by what a length multiplies the part of a batch's time that grows with its items, beside that of
// items of the mean length; 1 for one that is not known.
func (p *ByLength) Stretch(v serving.VariantID, d serving.DeviceTypeID, length int32) float64 {
	if length <= 0 {
		return 1
	}
	factor := p.Stretches.Factor(v, d, length)
	if at := p.Stretches.at(v, d); at < len(p.Factors) {
		factor /= p.Factors[at]
	}
	return factor
}

// Longest returns the longest length up to most with which a lone batch of items takes at most within; see Stretches.
func (p *ByLength) Longest(v serving.VariantID, d serving.DeviceTypeID, items int, within time.Duration,
	most int32) int32 {
	return p.Stretches.Longest(v, d, p.Profile.Latency(v, d, items, 1), within, most)
}

// MeasuredPoints returns that of the profile beneath; see the function MeasuredPoints.
func (p *ByLength) MeasuredPoints() MeasuredFunc { return MeasuredPoints(p.Profile) }

// Start returns that of the profile beneath; see the function Start.
func (p *ByLength) Start(d serving.DeviceTypeID) time.Duration { return Start(p.Profile, d) }
