package engine

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// lengths follows how long queries are, where latencies are known by length: the mean stretch of the items that come.
type lengths struct {
	*world
	stretches *profile.Stretches // nil where lengths do not count
	seen      []lengthsSeen      // by stage; may be shorter
	// sums are the stretches of the items that came, and factors their means in force, by variant*devices + device
	// type. Newer queries count more.
	sums, factors []float64
	spreads       [][]float64 // by the same places; see profile.ByLength
	// extras are what batches take beside the runs of their models, newer ones counting more, overheads what is
	// believed of it, and measured what the profile has of it; by device type.
	extras              []extraSeen
	overheads, measured []time.Duration
	changed             bool // the means differ so much from those in force that beliefs should change
}

type lengthsSeen struct {
	queries int
	items   float64
	latest  []int32 // lengths of the last queries, lengthSpan at most
}

type extraSeen struct {
	batches     int
	mean, whole float64 // ns, and with the runs
}

const (
	// lengthSpan is over how many queries the mean stretch is taken, and lengthsEvery after how many it is compared
	// with the one in force.
	lengthSpan, lengthsEvery = 512, 16
	// lengthsChange is the factor by which it must differ for new beliefs, as for latencies that are learned.
	lengthsChange = 1.1
	// firstSpread is after how many queries it is looked for the first time at how far lengths lie around their mean,
	// and lengthSpan for the last, unless the mean changes.
	firstSpread = 64
	// extraChange is by how much of a batch's time what it takes beside its runs must differ.
	extraChange = 0.05
)

// at returns the length with which items count at a stage: 0 where lengths do not count there.
func (l *lengths) at(s serving.StageID, length int32) int32 {
	if l.stretches == nil || length <= 0 {
		return 0
	}
	for _, v := range l.spec.Stages[s].Variants {
		for d := range l.spec.DeviceTypes {
			if _, ok := l.stretches.Error(v, serving.DeviceTypeID(d)); ok {
				return length
			}
		}
	}
	return 0
}

// came counts items of a query that have come to a stage, with a length that counts there.
func (l *lengths) came(s serving.StageID, items, length int32) {
	for len(l.seen) <= int(s) {
		l.seen = append(l.seen, lengthsSeen{})
	}
	if n := len(l.spec.Variants) * len(l.spec.DeviceTypes); len(l.sums) < n {
		l.sums = lengthened(l.sums, n)
	}
	y := &l.seen[s]
	if y.queries < lengthSpan {
		y.latest = append(y.latest, length)
	} else {
		y.latest[y.queries%lengthSpan] = length
	}
	y.queries++
	step := 1 / float64(min(y.queries, lengthSpan))
	y.items += step * (float64(items) - y.items)
	check := y.queries%lengthsEvery == 0
	if y.queries == firstSpread || y.queries == lengthSpan {
		l.changed = l.changed || slices.Min(y.latest) < slices.Max(y.latest)
	}
	for _, v := range l.spec.Stages[s].Variants {
		for d := range l.spec.DeviceTypes {
			at := int(v)*len(l.spec.DeviceTypes) + d
			f := l.stretches.Factor(v, serving.DeviceTypeID(d), length)
			l.sums[at] += step * (f*float64(items) - l.sums[at])
			is := l.sums[at] / y.items
			l.changed = l.changed || check && (is > lengthsChange*l.inForce(at) || l.inForce(at) > lengthsChange*is)
		}
	}
}

// inForce is the mean stretch that is believed.
func (l *lengths) inForce(at int) float64 {
	if at < len(l.factors) {
		return l.factors[at]
	}
	return 1
}

// enforce puts the present means in force, and how far lengths lie around them. Plans that are being made keep the ones
// before.
func (l *lengths) enforce(p profile.Profile) {
	l.changed = false
	l.factors, l.spreads = make([]float64, len(l.sums)), make([][]float64, len(l.sums))
	known := l.profile(p)
	for at := range l.factors {
		l.factors[at] = 1
		v, d := serving.VariantID(at/len(l.spec.DeviceTypes)), serving.DeviceTypeID(at%len(l.spec.DeviceTypes))
		s := l.spec.Variants[v].Stage
		if int(s) >= len(l.seen) || l.seen[s].items == 0 || l.sums[at] == 0 {
			continue
		}
		l.factors[at] = l.sums[at] / l.seen[s].items
		if _, ok := l.stretches.Error(v, d); ok {
			l.spreads[at] = known.Spread(l.spec, v, d, slices.Sorted(slices.Values(l.seen[s].latest)),
				l.seen[s].items)
		}
	}
	l.overheads = slices.Clone(l.overheads)
	for d := range l.extras {
		if x := &l.extras[d]; x.batches >= lengthsEvery {
			l.overheads[d] = time.Duration(x.mean)
		}
	}
}

// took returns how long a batch took that had its machine from the decision on until its end was known, and whose
// models ran for a part of that. Where lengths count, what it took beside its runs is learned on its own: the rest is
// what a profile is to be compared with.
func (l *lengths) took(i *fleet.Instance, b *fleet.Batch, whole, ran time.Duration) time.Duration {
	if l.stretches == nil || b.Overlaps {
		return whole
	}
	d := i.DeviceType()
	if l.extras == nil {
		l.extras = make([]extraSeen, len(l.spec.DeviceTypes))
	}
	x := &l.extras[d]
	x.batches++
	step := 1 / float64(min(x.batches, lengthSpan))
	x.mean += step * (float64(max(whole-ran, 0)) - x.mean)
	x.whole += step * (float64(whole) - x.whole)
	if x.batches%lengthsEvery == 0 {
		l.changed = l.changed || math.Abs(x.mean-float64(l.overheads[d])) > extraChange*x.whole
	}
	return ran + l.measured[d]
}

// around returns a profile that knows lengths.
func (l *lengths) around(p profile.Profile) profile.Profile {
	if l.stretches == nil {
		return p
	}
	known := l.profile(p)
	known.Factors, known.Spreads, known.Overheads = l.factors, l.spreads, l.overheads
	return known
}

// profile returns one for queries of the measured length.
func (l *lengths) profile(p profile.Profile) *profile.ByLength {
	return &profile.ByLength{Profile: p, Stretches: l.stretches, Overheads: l.measured, Measured: l.measured}
}

// atReference returns how long a batch would have taken with the length of the measured points: a batch that took
// longer than believed by some part takes longer by that part with any length.
func (l *lengths) atReference(i *fleet.Instance, b *fleet.Batch, p profile.Profile, took time.Duration) time.Duration {
	if l.stretches == nil {
		return took
	}
	runs := l.fleet.Runs(b.Variant, b.Head, b.Tasks)
	if !slices.ContainsFunc(runs, func(r serving.Run) bool { return r.Length > 0 }) {
		return took
	}
	// Runs whose length is not known count at the reference.
	sum := l.profile(p).Batch(b.Variant, i.DeviceType(), runs, b.Concurrency)
	whole := p.Latency(b.Variant, i.DeviceType(), b.Items, b.Concurrency)
	if sum <= 0 || sum >= profile.Unknown || whole >= profile.Unknown {
		return took
	}
	return time.Duration(float64(took) * float64(whole) / float64(sum))
}

// grow takes up a spec that has grown, and the latencies of all its variants.
func (l *lengths) grow(p profile.Profile, fresh *serving.Fresh) {
	s := profile.StretchesOf(p)
	l.stretches = s
	if l.measured = s.Overheads(); l.overheads == nil {
		l.overheads = l.measured
	}
	var cells []int32
	for _, v := range fresh.Variants {
		for d := range l.spec.DeviceTypes {
			cells = append(cells, int32(int(v)*len(l.spec.DeviceTypes)+d))
		}
	}
	for _, s := range fresh.Stages {
		if int(s) < len(l.seen) {
			l.seen[s] = lengthsSeen{}
		}
	}
	if l.sums != nil {
		l.sums = serving.Cleared(l.sums, cells)
		l.enforce(p)
	}
}
