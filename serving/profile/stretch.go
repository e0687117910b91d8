package profile

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/interp"
	"github.com/sluice-serving/sluice/serving"
)

// Stretches says how long batches of other lengths take than that with which the points of a profile were measured. A
// length is a factor on the part of the time that grows with the items of a batch:
//
//	T(n, L) = base + f(L) (T(n, L0) - base)
//
// L0 is the length of the points and f(L0) = 1. So the time a + b n + c n L + d n L^2 of a model that attends has the
// base a and f(L) = (b + c L + d L^2) / (b + c L0 + d L0^2). Between measured lengths f is a power of L; below the
// shortest it stays. Beyond the longest its exponent grows once more as it did before, to 2 at most, as attention comes
// to count more than the rest.
//
// Nil, a pair that was not measured at several lengths and a length that is not known stretch nothing.
type Stretches struct {
	devices   int
	cells     []stretch       // by variant*devices + device type
	overheads []time.Duration // of batches, by device type: of the times of a Table, those that are no run of a model
}

// stretch is that of a variant on a device type.
type stretch struct {
	base             float64   // ns
	lengths, factors []float64 // logarithms, ascending; nil where nothing was fitted
	err              float64
}

// fewestLengths is how many lengths a fit needs, the reference included.
const fewestLengths = 3

// bases is how many bases are tried between 0 and the shortest time.
const bases = 256

// NewStretches fits the measured points of other lengths; nil where there are none. Impossible points are ignored.
func NewStretches(spec *serving.Spec, m serving.Measurements) *Stretches {
	if len(m.Length) == 0 {
		return nil
	}
	s := &Stretches{
		devices: len(spec.DeviceTypes), cells: make([]stretch, len(spec.Variants)*len(spec.DeviceTypes)),
		overheads: overheads(spec, m),
	}
	type key struct{ at, items int }
	reference := make(map[key]float64)
	for _, p := range m.Latency {
		if p.Concurrency == 1 {
			reference[key{s.at(p.Variant, p.DeviceType), p.Items}] = float64(p.Mean)
		}
	}
	byCell := make(map[int][]lengthPoint)
	for _, p := range m.Length {
		if p.Variant < 0 || int(p.Variant) >= len(spec.Variants) || p.DeviceType < 0 || int(p.DeviceType) >= s.devices {
			continue
		}
		at := s.at(p.Variant, p.DeviceType)
		x, ok := reference[key{at, p.Items}]
		if ok && p.Reference > 0 && p.Length > 0 && p.Length != p.Reference && p.Mean > 0 {
			s.cells[at].lengths = []float64{math.Log(float64(p.Reference))}
			byCell[at] = append(byCell[at], lengthPoint{p.Length, x, float64(p.Mean)})
		}
	}
	for at, points := range byCell {
		s.cells[at] = fitStretch(s.cells[at].lengths[0], points)
	}
	return s
}

// at is the place of a variant on a device type.
func (s *Stretches) at(v serving.VariantID, d serving.DeviceTypeID) int {
	return int(v)*s.devices + int(d)
}

// lengthPoint is a batch that takes x ns with the reference length and y ns with another one.
type lengthPoint struct {
	length int32
	x, y   float64
}

// fitStretch finds the base with which the relative errors of the points are smallest in the mean square; of several
// the smallest, so that a variant that runs single items has none.
func fitStretch(reference float64, points []lengthPoint) stretch {
	slices.SortFunc(points, func(a, b lengthPoint) int { return cmp.Compare(a.length, b.length) })
	least := math.Inf(1)
	for _, p := range points {
		least = min(least, p.x, p.y)
	}
	var out stretch
	best := math.Inf(1)
	for k := range bases {
		f := factorsFor(least*float64(k)/bases, reference, points)
		if len(f.lengths) < fewestLengths {
			return stretch{}
		}
		sum, worst := 0.0, 0.0
		for _, p := range points {
			off := (f.base+f.factor(p.length)*(p.x-f.base))/p.y - 1
			sum, worst = sum+off*off, max(worst, math.Abs(off))
		}
		if sum < best*(1-1e-9) {
			best, out = sum, f
			out.err = worst
		}
	}
	out.continued()
	return out
}

// continued adds a point beyond the longest length, from where on f goes on as a power.
func (c *stretch) continued() {
	n := len(c.lengths)
	exponent := func(k int) float64 {
		return (c.factors[k] - c.factors[k-1]) / (c.lengths[k] - c.lengths[k-1])
	}
	last := exponent(n - 1)
	grown := min(last+max(last-exponent(n-2), 0), max(last, 2))
	c.lengths, c.factors = append(c.lengths, c.lengths[n-1]+1), append(c.factors, c.factors[n-1]+grown)
}

// factorsFor returns the factors that fit best for a base. They never fall with the length.
func factorsFor(base, reference float64, points []lengthPoint) stretch {
	out := stretch{base: base}
	at := -1 // of the reference
	add := func(length, factor float64) {
		out.lengths, out.factors = append(out.lengths, length), append(out.factors, factor)
	}
	for from := 0; from < len(points); {
		to, up, down := from, 0.0, 0.0
		for ; to < len(points) && points[to].length == points[from].length; to++ {
			p := points[to]
			up, down = up+(p.y-base)*(p.x-base)/(p.y*p.y), down+(p.x-base)*(p.x-base)/(p.y*p.y)
		}
		length := math.Log(float64(points[from].length))
		if at < 0 && length > reference {
			at = len(out.lengths)
			add(reference, 0)
		}
		add(length, math.Log(max(up/down, leastFactor)))
		from = to
	}
	if at < 0 {
		at = len(out.lengths)
		add(reference, 0)
	}
	for k := at + 1; k < len(out.factors); k++ {
		out.factors[k] = max(out.factors[k], out.factors[k-1])
	}
	for k := at - 1; k >= 0; k-- {
		out.factors[k] = min(out.factors[k], out.factors[k+1])
	}
	return out
}

// leastFactor keeps logarithms finite where a base is nearly all of a time.
const leastFactor = 1e-6

func (c *stretch) factor(length int32) float64 {
	if c.lengths == nil {
		return 1
	}
	y, _ := interp.Linear(c.lengths, c.factors, math.Log(float64(length)))
	return math.Exp(y)
}

// Latency returns how long a batch takes that is padded to a length, if it takes so long at the reference length.
func (s *Stretches) Latency(v serving.VariantID, d serving.DeviceTypeID, reference time.Duration,
	length int32) time.Duration {
	if s == nil || length <= 0 {
		return reference
	}
	at := s.at(v, d)
	return s.stretched(at, reference, s.cells[at].factor(length))
}

// Factor returns by what a length multiplies the part of the time that grows with the items; 1 for the length of the
// measured points, and where the length does not count.
func (s *Stretches) Factor(v serving.VariantID, d serving.DeviceTypeID, length int32) float64 {
	if s == nil || length <= 0 {
		return 1
	}
	return s.cells[s.at(v, d)].factor(length)
}

// Base returns the part of the time that does not grow with the items.
func (s *Stretches) Base(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.cells[s.at(v, d)].base)
}

// stretched applies a factor to a time at the reference length.
func (s *Stretches) stretched(at int, reference time.Duration, factor float64) time.Duration {
	if reference >= Unknown || s.cells[at].lengths == nil {
		return reference
	}
	base := min(s.cells[at].base, float64(reference))
	return time.Duration(min(base+factor*(float64(reference)-base), float64(Unknown)))
}

// Overheads returns what a batch is believed to take beside its runs, by device type. It must not be changed.
func (s *Stretches) Overheads() []time.Duration {
	if s == nil {
		return nil
	}
	return s.overheads
}

// Longest returns the longest length up to most with which a batch takes at most within, if it takes so long at the
// reference length; 0 where none does.
func (s *Stretches) Longest(v serving.VariantID, d serving.DeviceTypeID, reference, within time.Duration,
	most int32) int32 {
	if s.Latency(v, d, reference, most) <= within {
		return most
	}
	least := int32(0)
	for least+1 < most {
		if mid := least + (most-least)/2; s.Latency(v, d, reference, mid) <= within {
			least = mid
		} else {
			most = mid
		}
	}
	return least
}

// Error returns by how much of itself a measured point is off the fit at most; false where nothing was fitted.
func (s *Stretches) Error(v serving.VariantID, d serving.DeviceTypeID) (float64, bool) {
	if s == nil || s.cells[s.at(v, d)].lengths == nil {
		return 0, false
	}
	return s.cells[s.at(v, d)].err, true
}

// StretchesOf returns how the latencies of p depend on the length of queries; nil where p does not know.
func StretchesOf(p Profile) *Stretches {
	if t, ok := p.(interface{ Stretches() *Stretches }); ok {
		return t.Stretches()
	}
	return nil
}
