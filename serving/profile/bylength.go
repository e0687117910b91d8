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
	// Spreads are by what a batch of so many items takes longer than with that mean length, since the items differ and
	// do not all share a run; by the same places, and items-1; nil for not at all. They must not change any more.
	Spreads [][]float64
	// Overheads are the parts of Latency that no length stretches and that a batch of several runs has once, by device
	// type, and Measured what the latencies of Profile have in their place; nil for none. They must not change any
	// more.
	Overheads, Measured []time.Duration
}

// run splits the time of a batch with the length of the measured points.
func (p *ByLength) run(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) (run,
	overhead time.Duration) {
	run = p.Profile.Latency(v, d, items, concurrency)
	if run >= Unknown {
		return run, 0
	}
	return max(run-of(p.Measured, d), 0), of(p.Overheads, d)
}

// of returns that of a device type; 0 beyond the end.
func of(list []time.Duration, d serving.DeviceTypeID) time.Duration {
	if int(d) >= len(list) {
		return 0
	}
	return list[d]
}

// Overhead returns the part of a batch's time that is not a run of its model.
func (p *ByLength) Overhead(d serving.DeviceTypeID) time.Duration {
	return of(p.Overheads, d)
}

// Base returns the part of a batch's time that does not grow with its items.
func (p *ByLength) Base(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return p.Overhead(d) + p.Stretches.Base(v, d)
}

// Latency implements Profile.
func (p *ByLength) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	run, overhead := p.even(v, d, items, concurrency)
	if at := p.Stretches.at(v, d); at < len(p.Spreads) && items <= len(p.Spreads[at]) && run < Unknown {
		run = time.Duration(min(p.Spreads[at][items-1]*float64(run), float64(Unknown)))
	}
	return overhead + run
}

// even is run for items that all have the mean length.
func (p *ByLength) even(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) (run,
	overhead time.Duration) {
	run, overhead = p.run(v, d, items, concurrency)
	if at := p.Stretches.at(v, d); at < len(p.Factors) && p.Factors[at] != 1 {
		run = p.Stretches.stretched(at, run, p.Factors[at])
	}
	return run, overhead
}

// At returns the believed time of a batch whose items all have a length, or are padded to it. One that is not known
// counts as the mean.
func (p *ByLength) At(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	length int32) time.Duration {
	if length <= 0 {
		run, overhead := p.even(v, d, items, concurrency)
		return overhead + run
	}
	run, overhead := p.run(v, d, items, concurrency)
	return overhead + p.Stretches.Latency(v, d, run, length)
}

// Batch returns the believed time of a batch of which a model runs some after the others.
func (p *ByLength) Batch(v serving.VariantID, d serving.DeviceTypeID, runs []serving.Run,
	concurrency int) (sum time.Duration) {
	for k, r := range runs {
		takes := p.At(v, d, r.Items, concurrency, r.Length)
		if takes >= Unknown {
			return Unknown
		}
		if k > 0 {
			takes = max(takes-p.Overhead(d), 0)
		}
		sum += takes
	}
	return min(sum, Unknown)
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
	run, overhead := p.run(v, d, items, 1)
	return p.Stretches.Longest(v, d, run, within-overhead, most)
}

// MeasuredPoints returns that of the profile beneath; see the function MeasuredPoints.
func (p *ByLength) MeasuredPoints() MeasuredFunc { return MeasuredPoints(p.Profile) }

// Start returns that of the profile beneath; see the function Start.
func (p *ByLength) Start(d serving.DeviceTypeID) time.Duration { return Start(p.Profile, d) }
