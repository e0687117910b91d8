package profiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/tensor"
)

// LengthPoint is the mean latency, in microseconds, of one variant on one device type, one batch at once, with inputs
// of another length than those of the Points.
type LengthPoint struct {
	Variant    string  `json:"variant"`
	DeviceType string  `json:"device_type"`
	Reference  int32   `json:"reference"` // length of the Points
	Length     int32   `json:"length"`
	Batch      int     `json:"batch"` // items
	Samples    int     `json:"samples"`
	Mean       float64 `json:"mean_us"`
}

type lengthKey struct {
	variant, device string
	length          int32
	batch           int
}

func (p *LengthPoint) key() lengthKey { return lengthKey{p.Variant, p.DeviceType, p.Length, p.Batch} }

func byLength(a, b LengthPoint) int {
	return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType),
		cmp.Compare(a.Length, b.Length), cmp.Compare(a.Batch, b.Batch))
}

// mergeLengths replaces the points of a variant on a device type by those of another file, which were measured with
// another reference.
func (f *File) mergeLengths(by *File) {
	again := func(p LengthPoint) bool {
		return slices.ContainsFunc(by.Lengths, func(x LengthPoint) bool {
			return x.Variant == p.Variant && x.DeviceType == p.DeviceType
		})
	}
	f.Lengths = append(slices.DeleteFunc(f.Lengths, again), by.Lengths...)
}

func validLengths(list []LengthPoint) error {
	seen := make(map[lengthKey]bool)
	for i := range list {
		p := &list[i]
		switch {
		case p.Variant == "" || p.DeviceType == "":
			return fmt.Errorf("lengths[%d]: variant is %q and device_type %q: neither may be empty", i, p.Variant,
				p.DeviceType)
		case p.Length < 1 || p.Reference < 1 || p.Length == p.Reference:
			return fmt.Errorf("lengths[%d]: length is %d and reference %d, want two numbers of at least 1", i, p.Length,
				p.Reference)
		case p.Batch < 1 || p.Batch > maxBatch:
			return fmt.Errorf("lengths[%d].batch is %d, want 1 to %d", i, p.Batch, maxBatch)
		case p.Samples < 1:
			return fmt.Errorf("lengths[%d].samples is %d, want at least 1", i, p.Samples)
		case !(p.Mean >= 0.001 && p.Mean <= maxMicros):
			return fmt.Errorf("lengths[%d].mean_us is %v, want a number from 0.001 to %v", i, p.Mean,
				float64(maxMicros))
		case seen[p.key()]:
			return fmt.Errorf("lengths[%d] measures the same as one before: %q on %q, length %d, batch %d", i,
				p.Variant, p.DeviceType, p.Length, p.Batch)
		}
		seen[p.key()] = true
	}
	return nil
}

// lengthScales are the lengths that are measured beside that of the inputs, as factors. Where a model does not take the
// longer one, half of it is tried.
var lengthScales = []float64{0.25, 4}

// lengthGuess is the first guess of open dimensions that are a length. It is no size of a batch, and a number that
// networks over pictures take.
const lengthGuess = 96

// lengthPoints returns what is measured of other lengths, once no other point of a variant is left: batches of one
// item, and the largest that a quarter of the bound allows.
func (p *profiler) lengthPoints(s *profiledVariant, left []*point) (open []*point) {
	mine := func(q *point) bool { return q.subject == s }
	if s.runner == nil || s.source.length == nil || s.lengthened || s.failure != nil ||
		slices.ContainsFunc(left, mine) {
		return nil
	}
	s.lengthened = true
	b, err := s.batchOf(1)
	if err != nil || len(b.Portions) == 0 {
		return nil
	}
	if s.reference = s.source.length.Of(b.Portions[0].Inputs); s.reference == 0 {
		return nil
	}
	largest := 0
	for _, r := range s.results {
		if r.Concurrency == 1 && (s.bound <= 0 || micros(r.Mean) <= s.bound/4 || r.Batch == 1) {
			largest = max(largest, r.Batch)
		}
	}
	if largest == 0 {
		return nil
	}
	for _, scale := range lengthScales {
		for _, n := range slices.Compact([]int{1, largest}) {
			q := &point{subject: s, batch: n, concurrency: 1, scale: scale}
			p.total++
			open = append(open, q)
		}
	}
	return open
}

// rescale has a point of a longer length that fails measured at half of that, and one of a shorter length at dimensions
// three times as large as the reference's: models that halve pictures several times take multiples alone. Others are
// given up.
func (p *profiler) rescale(q *point, err error) {
	q.samples, q.own = nil, nil
	switch {
	case q.scale > 2:
		q.scale /= 2
		return
	case q.scale < 1:
		q.scale = math.Pow(3, float64(len(q.subject.source.length.Axes)))
		return
	}
	p.end(q, fmt.Sprintf(": skipped, it fails: %v", err))
}

// lengthResult returns what was measured of another length; false where that is the reference, as of very short ones.
func (q *point) lengthResult(device string) (LengthPoint, bool) {
	s := q.subject
	mean, _ := moments(q.samples)
	out := LengthPoint{Variant: s.name, DeviceType: device, Reference: s.reference,
		Length: s.source.length.Of(q.own.Portions[0].Inputs), Batch: q.batch, Samples: len(q.samples),
		Mean: nanos(mean)}
	twice := slices.ContainsFunc(s.lengths, func(p LengthPoint) bool { return p.key() == out.key() })
	return out, out.Length > 0 && out.Length != out.Reference && !twice
}

// batchFor returns the batch that a point runs.
func (q *point) batchFor() (*dataplane.Batch, error) {
	b, err := q.subject.batchOf(q.batch)
	if err != nil || q.scale == 0 {
		return b, err
	}
	if q.own == nil {
		if q.own, err = q.subject.source.scaled(b, q.scale); err != nil {
			return nil, err
		}
	}
	return q.own, nil
}

// scaled returns a batch whose inputs are longer or shorter by a factor: they are cut, or repeated.
func (s *source) scaled(b *dataplane.Batch, by float64) (*dataplane.Batch, error) {
	each := math.Pow(by, 1/float64(len(s.length.Axes)))
	out := copyOf(b)
	for k := range out.Portions {
		inputs := slices.Clone(out.Portions[k].Inputs)
		for i := range inputs {
			at := slices.IndexFunc(s.specs, func(x tensor.Spec) bool { return x.Name == inputs[i].Name })
			if at < 0 {
				continue
			}
			var err error
			if inputs[i], err = scaledInput(&inputs[i], s.specs[at].Shape, s.counted, each); err != nil {
				return nil, err
			}
		}
		out.Portions[k].Inputs = inputs
	}
	return out, nil
}

// scaledInput changes the dimensions of an input that are open, but for that of the items.
func scaledInput(t *tensor.Tensor, open []int64, counted bool, by float64) (tensor.Tensor, error) {
	out := *t
	out.Shape = slices.Clone(t.Shape)
	for d := range out.Shape {
		if d < len(open) && open[d] < 0 && (!counted || d > 0) {
			out.Shape[d] = max(1, int64(math.Round(float64(t.Shape[d])*by)))
		}
	}
	if slices.Equal(out.Shape, t.Shape) {
		return out, nil
	}
	n, err := tensor.Elements(out.Shape, maxInputElements)
	if err == nil && t.DType == tensor.Bytes {
		err = fmt.Errorf("texts are not made longer")
	}
	if err != nil {
		return out, fmt.Errorf("input %q: %w", t.Name, err)
	}
	out.Data = tiled(make([]byte, 0, n*int64(t.DType.Size())), t.Data, out.Shape, t.Shape)
	return out, nil
}

// tiled appends the elements of a tensor in another shape, repeated where that is longer.
func tiled(out, from []byte, to, shape []int64) []byte {
	if len(shape) == 0 || slices.Equal(to, shape) {
		return append(out, from...)
	}
	each := int64(len(from)) / max(shape[0], 1)
	for i := range to[0] {
		k := i % max(shape[0], 1)
		out = tiled(out, from[k*each:(k+1)*each], to[1:], shape[1:])
	}
	return out
}

// lengthPointsOf returns the points of other lengths with the ids of a spec.
func (f *File) lengthPointsOf(ids names) (out []serving.LengthPoint, err error) {
	for i := range f.Lengths {
		p := &f.Lengths[i]
		vs, d, err := ids.resolve(p.Variant, p.DeviceType)
		if err != nil {
			return nil, fmt.Errorf("profile: lengths[%d].%w", i, err)
		}
		for _, v := range vs {
			out = append(out, serving.LengthPoint{Variant: v, DeviceType: d, Reference: p.Reference, Length: p.Length,
				Items: p.Batch, Mean: micros(p.Mean)})
		}
	}
	return out, nil
}

// LengthFit says how well a fit tells what was measured of a variant at several lengths (profile.Stretches).
type LengthFit struct {
	Variant, DeviceType string
	Lengths             []int32 // ascending, with the reference
	Fitted              bool    // false for too few lengths: the length does not count then
	Error               float64 // by how much of itself a measured mean is off at most
}

// LengthFits returns the fit of each variant on each device type with other lengths than that of its points.
func (f *File) LengthFits() (out []LengthFit, err error) {
	list := slices.SortedFunc(slices.Values(f.Lengths), byLength)
	for len(list) > 0 {
		x := LengthFit{Variant: list[0].Variant, DeviceType: list[0].DeviceType, Lengths: []int32{list[0].Reference}}
		for len(list) > 0 && list[0].Variant == x.Variant && list[0].DeviceType == x.DeviceType {
			x.Lengths, list = append(x.Lengths, list[0].Length), list[1:]
		}
		slices.Sort(x.Lengths)
		x.Lengths = slices.Compact(x.Lengths)
		alone := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: x.DeviceType}},
			Variants: []serving.Variant{{Name: x.Variant, MaxBatch: 1}}}
		kept, _ := f.Only(alone)
		m, err := kept.Measurements(alone)
		if err != nil {
			return nil, err
		}
		x.Error, x.Fitted = profile.NewStretches(alone, m).Error(0, 0)
		out = append(out, x)
	}
	return out, nil
}
