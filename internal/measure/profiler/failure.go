package profiler

import (
	"fmt"
	"slices"
)

// Failure is a variant that could not be run on a device type as often as was asked for. The others are measured all
// the same.
type Failure struct {
	Variant    string `json:"variant"`
	DeviceType string `json:"device_type"`
	// Batch is the smallest batch that failed, in items; 0 where the variant could not even be loaded.
	Batch  int    `json:"batch"`
	Reason string `json:"reason"`
}

// Failure returns the failure of a variant on a device type; nil where it ran.
func (f *File) Failure(variant, device string) *Failure {
	at := slices.IndexFunc(f.Failures, func(x Failure) bool { return x.Variant == variant && x.DeviceType == device })
	if at < 0 {
		return nil
	}
	return &f.Failures[at]
}

// limits returns the memory of the variants. The most items of one that fails with larger batches are those with which
// it runs.
func (f *File) limits() []Memory {
	out := slices.Clone(f.Memory)
	for _, x := range f.Failures {
		if x.Batch < 2 {
			continue
		}
		at := slices.IndexFunc(out, func(m Memory) bool {
			return m.Variant == x.Variant && m.DeviceType == x.DeviceType
		})
		if at < 0 {
			at = len(out)
			out = append(out, Memory{Variant: x.Variant, DeviceType: x.DeviceType})
		}
		if most := &out[at].Most; *most == 0 || *most >= x.Batch {
			*most = x.Batch / 2 // sizes are tried as powers of two
		}
	}
	return out
}

// Rename gives a file of one variant on one device type other names.
func (f *File) Rename(variant, device string) {
	f.DeviceType = device
	for i := range f.Points {
		f.Points[i].Variant, f.Points[i].DeviceType = variant, device
	}
	for i := range f.Lengths {
		f.Lengths[i].Variant, f.Lengths[i].DeviceType = variant, device
	}
	for i := range f.Loads {
		f.Loads[i].Variant, f.Loads[i].DeviceType = variant, device
	}
	for i := range f.Memory {
		f.Memory[i].Variant, f.Memory[i].DeviceType = variant, device
	}
	for i := range f.Failures {
		f.Failures[i].Variant, f.Failures[i].DeviceType = variant, device
	}
}

// Failed returns the first failure as an error; nil where all ran.
func (f *File) Failed() error {
	if len(f.Failures) == 0 {
		return nil
	}
	x := &f.Failures[0]
	if x.Batch == 0 {
		return fmt.Errorf("variant %q cannot be loaded on %q: %s", x.Variant, x.DeviceType, x.Reason)
	}
	return fmt.Errorf("variant %q fails on %q with %d items: %s", x.Variant, x.DeviceType, x.Batch, x.Reason)
}

// Has reports whether a variant was measured on a device type.
func (f *File) Has(variant, device string) bool {
	return slices.ContainsFunc(f.Points, func(p Point) bool { return p.Variant == variant && p.DeviceType == device })
}

// Without returns a copy without anything about some variants but their accuracies.
func (f *File) Without(variants []string) *File {
	out := *f
	is := func(name string) bool { return slices.Contains(variants, name) }
	out.Points = slices.DeleteFunc(slices.Clone(f.Points), func(p Point) bool { return is(p.Variant) })
	out.Lengths = slices.DeleteFunc(slices.Clone(f.Lengths), func(p LengthPoint) bool { return is(p.Variant) })
	out.Loads = slices.DeleteFunc(slices.Clone(f.Loads), func(l Load) bool { return is(l.Variant) })
	out.Memory = slices.DeleteFunc(slices.Clone(f.Memory), func(m Memory) bool { return is(m.Variant) })
	out.Failures = slices.DeleteFunc(slices.Clone(f.Failures), func(x Failure) bool { return is(x.Variant) })
	return &out
}

func validFailures(list []Failure) error {
	seen := make(map[[2]string]bool)
	for i, x := range list {
		key := [2]string{x.Variant, x.DeviceType}
		switch {
		case x.Variant == "":
			return fmt.Errorf("failures[%d].variant is empty", i)
		case x.DeviceType == "":
			return fmt.Errorf("failures[%d].device_type is empty", i)
		case x.Batch < 0 || x.Batch > maxBatch:
			return fmt.Errorf("failures[%d].batch is %d, want 0 to %d", i, x.Batch, maxBatch)
		case seen[key]:
			return fmt.Errorf("failures[%d] is of %q on %q, as one before", i, x.Variant, x.DeviceType)
		}
		seen[key] = true
	}
	return nil
}

// mergeFailures takes over another profile's failures. What it has measured, or has other failures of, has no earlier
// ones any more.
func (f *File) mergeFailures(other *File) {
	f.Failures = slices.DeleteFunc(f.Failures, func(x Failure) bool {
		return other.Failure(x.Variant, x.DeviceType) != nil || other.Has(x.Variant, x.DeviceType)
	})
	f.Failures = append(f.Failures, other.Failures...)
	for _, name := range other.Whole {
		if !slices.Contains(f.Whole, name) {
			f.Whole = append(f.Whole, name)
		}
	}
}

// fail notes that a variant could not be run with batches of so many items, or not be loaded for 0. Its points of that
// size and above are skipped, and do not count if they are done: the larger of a model that fails now and then say
// nothing of the smaller.
func (p *profiler) fail(s *profiledVariant, batch int, err error) {
	if s.failure == nil || batch < s.failure.Batch {
		s.failure = &Failure{Variant: s.name, DeviceType: p.device(), Batch: batch, Reason: err.Error()}
	}
	s.results = slices.DeleteFunc(s.results, func(r Point) bool { return r.Batch >= batch })
	s.lengths = slices.DeleteFunc(s.lengths, func(r LengthPoint) bool { return r.Batch >= batch })
	for _, q := range s.points {
		if !q.done && q.batch >= batch {
			p.end(q, ": skipped, it fails")
		}
	}
}
