package scrooge

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// maxSlots bounds the concurrency that is planned for.
	maxSlots = 32
	// maxUnmeasuredSlots bounds it where the profile cannot tell what was measured.
	maxUnmeasuredSlots = 8
	// minGain is by how much another slot must raise the rate, relatively: less is noise.
	minGain = 1e-3
)

// addBursts sets the bursts of a stage's modes if so many items of a query come together (ours: Eq. 3 spreads them
// evenly over time). A machine is sent its share of them.
func (x *request) addBursts(s *stage, items float64) {
	for k := range s.modes {
		m := &s.modes[k]
		share := min(1, m.Rate()/s.rate)
		rounds := math.Ceil(items * share / float64(m.Batch*m.Slots))
		m.Burst = max(0, time.Duration((rounds-1)*float64(m.Latency)))
	}
}

// modes lists the modes of a stage: on every type with a machine, every variant that meets the floor, in every batch
// size and at every concurrency that was measured, up to the level at which another batch at once serves no more
// (§3.2). Dominated modes are left out.
func (x *request) modes(s serving.StageID, floor float64, broken []bool) (out []Mode) {
	measured := profile.MeasuredPoints(x.believed)
	for d := range x.spec.DeviceTypes {
		if len(x.workers[d]) == 0 {
			continue
		}
		var all []Mode
		for _, v := range x.variants(s, floor, broken) {
			all = append(all, x.points(v, serving.DeviceTypeID(d), measured)...)
		}
		out = append(out, undominated(all)...)
	}
	return out
}

// variants lists the usable variants of a stage.
func (x *request) variants(s serving.StageID, floor float64, broken []bool) (out []serving.VariantID) {
	best := serving.VariantID(serving.None)
	for _, v := range x.spec.Stages[s].Variants {
		if broken[v] || x.spec.Variants[v].Accuracy < floor {
			continue
		}
		out = append(out, v)
		if best == serving.None || x.spec.Variants[v].Accuracy > x.spec.Variants[best].Accuracy {
			best = v
		}
	}
	if x.o.MostAccurate && best != serving.None {
		return []serving.VariantID{best}
	}
	return out
}

// points lists the modes of a variant on a type.
func (x *request) points(v serving.VariantID, d serving.DeviceTypeID, measured profile.MeasuredFunc) (out []Mode) {
	variant, levels := &x.spec.Variants[v], maxSlots
	sizes := make([]int, 0, variant.MaxBatch)
	if measured == nil {
		levels = maxUnmeasuredSlots
		for b := 1; b < variant.MaxBatch; b *= 2 {
			sizes = append(sizes, b)
		}
		sizes = append(sizes, variant.MaxBatch)
	} else {
		for b := range variant.MaxBatch {
			sizes = append(sizes, b+1)
		}
	}
	if x.o.Single {
		levels = 1
	}
	for _, b := range sizes {
		last := 0.0
		for c := 1; c <= levels; c++ {
			if measured != nil && !measured(v, d, b, c) {
				continue
			}
			took := x.believed.Latency(v, d, b, c)
			if took >= profile.Unknown || took <= 0 || !x.fitsMemory(v, d, b*c) {
				break
			}
			m := Mode{Type: int(d), Batch: b, Slots: c, Latency: took, Tag: int(v)}
			if m.Rate() <= last*(1+minGain) {
				break
			}
			last = m.Rate()
			out = append(out, m)
		}
	}
	return out
}

// fitsMemory reports whether a variant with so many items at once fits the memory of a machine.
func (x *request) fitsMemory(v serving.VariantID, d serving.DeviceTypeID, items int) bool {
	has := x.spec.DeviceTypes[d].MemoryBytes
	return has <= 0 || x.memory(v, items) <= has
}

// memory returns the bytes that a variant takes with so many items at once.
func (x *request) memory(v serving.VariantID, items int) int64 {
	return x.spec.Variants[v].MemoryBytes + int64(items)*x.spec.Variants[v].ItemBytes
}

// undominated leaves out the modes of one type for which another is no worse in batch size, latency and rate: whatever
// the rate, that one is in time when they are and takes no more of a machine.
func undominated(all []Mode) (out []Mode) {
	for i := range all {
		a, beaten := &all[i], false
		for j := range all {
			b := &all[j]
			noWorse := b.Batch <= a.Batch && b.Latency <= a.Latency && b.Rate() >= a.Rate() &&
				b.Slots*b.Batch >= a.Slots*a.Batch
			same := b.Batch == a.Batch && b.Latency == a.Latency && b.Rate() == a.Rate()
			if i != j && noWorse && (!same || j < i) {
				beaten = true
				break
			}
		}
		if !beaten {
			out = append(out, *a)
		}
	}
	return out
}
