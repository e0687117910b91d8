package profiler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Version is the version of the format of profile files.
const Version = 1

// limits of what Decode accepts
const (
	maxFileBytes = 64 << 20
	maxPoints    = 1 << 20
	maxBatch     = 1 << 20
	maxMicros    = 1e12 // more than eleven days
)

// File is a profile as it is stored. It has names instead of ids, so that it stays valid when the configuration
// changes.
type File struct {
	Version    int       `json:"version"`
	Created    time.Time `json:"created"`
	Host       Host      `json:"host,omitzero"`
	DeviceType string    `json:"device_type,omitempty"` // empty in a file merged from several types
	Points     []Point   `json:"points"`
	Loads      []Load    `json:"loads"`
	// Lengths are batches of other lengths than the points; empty for variants whose inputs have one length.
	Lengths []LengthPoint `json:"lengths,omitempty"`
	// Overheads has each device type at most once; those that are not measured are missing.
	Overheads []Overhead `json:"overheads,omitempty"`
	// Memory has each variant at most once on a device type; those that are not measured are missing.
	Memory []Memory `json:"memory,omitempty"`
	// Spares has a device type at most once: what spare processes took there.
	Spares []SpareMemory `json:"spares,omitempty"`
	// Accelerators says how accelerators were while the points were measured, by device type.
	Accelerators []AcceleratorSeen `json:"accelerators,omitempty"`
	// Accuracies has each variant at most once; those that are not measured are missing.
	Accuracies []Accuracy `json:"accuracies,omitempty"`
	// Confidences has each variant at most once; those whose answers do not tell how sure they are are missing.
	Confidences []Confidence `json:"confidences,omitempty"`
	// EachQuery names the variants whose model is called for each query as a whole, in order.
	EachQuery []string `json:"each_query,omitempty"`
	// Failures has each variant at most once on a device type; those that ran are missing.
	Failures []Failure `json:"failures,omitempty"`
	// Whole lists the variants that were found not to batch, and run one query at a time.
	Whole []string `json:"whole,omitempty"`
}

// Overhead is what serving costs beside the runs on one device type (see serving.Overhead), in microseconds.
type Overhead struct {
	DeviceType string  `json:"device_type"`
	Queries    int     `json:"queries"` // that it was measured with
	Batch      float64 `json:"batch_us"`
	Query      float64 `json:"query_us"`
}

// Host is the machine on which a profile was measured. It is zero in a file merged from several.
type Host struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	OS          string `json:"os"`
	ONNXRuntime string `json:"onnxruntime,omitempty"`
	Accelerator string `json:"accelerator,omitempty"` // and its driver; empty where models ran on the processor
}

// Point is the latency of one variant on one device type at one batch size and concurrency, in microseconds.
type Point struct {
	Variant      string  `json:"variant"`
	DeviceType   string  `json:"device_type"`
	Batch        int     `json:"batch"`       // items
	Concurrency  int     `json:"concurrency"` // batches at the same time
	Samples      int     `json:"samples"`
	Mean         float64 `json:"mean_us"`
	StdDev       float64 `json:"stddev_us"`
	P50          float64 `json:"p50_us"`
	P90          float64 `json:"p90_us"`
	P95          float64 `json:"p95_us"`
	P99          float64 `json:"p99_us"`
	Interpolated bool    `json:"interpolated"` // not measured; readers skip it and interpolate themselves
}

// Load is the time to load a variant, including a warm-up with one item, in milliseconds.
type Load struct {
	Variant    string  `json:"variant"`
	DeviceType string  `json:"device_type"`
	Load       float64 `json:"load_ms"`
}

// Decode reads a profile. Unknown fields, trailing data and impossible values are errors that name the field.
func Decode(r io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("profile: larger than %d bytes", maxFileBytes)
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	d.DisallowUnknownFields()
	var f File
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("profile: something follows the profile at byte %d", d.InputOffset())
	}
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return &f, nil
}

// ReadFile reads a profile from a file. Errors name the path.
func ReadFile(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w; `sluice profile` makes one", err)
	}
	defer func() { _ = r.Close() }()
	f, err := Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Encode writes the profile to w as indented JSON, with points in the order of their names. Equal profiles give equal
// bytes. f is not changed.
func (f *File) Encode(w io.Writer) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	out := *f
	out.Points = append([]Point{}, f.Points...)
	out.Loads = append([]Load{}, f.Loads...)
	out.Overheads, out.Lengths = slices.Clone(f.Overheads), slices.Clone(f.Lengths)
	out.Accuracies, out.Confidences = slices.Clone(f.Accuracies), slices.Clone(f.Confidences)
	out.Memory, out.Spares = slices.Clone(f.Memory), slices.Clone(f.Spares)
	out.Accelerators, out.EachQuery = slices.Clone(f.Accelerators), slices.Clone(f.EachQuery)
	out.Failures = slices.Clone(f.Failures)
	out.sort()
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(&out)
}

// WriteFile writes the profile to a file, which it replaces atomically. It makes the folder if need be.
func (f *File) WriteFile(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	err = f.Encode(tmp)
	if err == nil {
		err = errors.Join(tmp.Chmod(0o644), tmp.Sync())
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("profile: write %s: %w", path, err)
	}
	return nil
}

func (f *File) sort() {
	slices.SortFunc(f.Points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType),
			cmp.Compare(a.Concurrency, b.Concurrency), cmp.Compare(a.Batch, b.Batch))
	})
	slices.SortFunc(f.Lengths, byLength)
	slices.SortFunc(f.Loads, func(a, b Load) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType))
	})
	slices.SortFunc(f.Memory, func(a, b Memory) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType))
	})
	slices.SortFunc(f.Spares, func(a, b SpareMemory) int { return cmp.Compare(a.DeviceType, b.DeviceType) })
	slices.SortStableFunc(f.Accelerators, func(a, b AcceleratorSeen) int {
		return cmp.Compare(a.DeviceType, b.DeviceType)
	})
	slices.SortFunc(f.Accuracies, func(a, b Accuracy) int { return cmp.Compare(a.Variant, b.Variant) })
	slices.SortFunc(f.Confidences, func(a, b Confidence) int { return cmp.Compare(a.Variant, b.Variant) })
	slices.Sort(f.EachQuery)
	f.EachQuery = slices.Compact(f.EachQuery)
	slices.SortFunc(f.Overheads, func(a, b Overhead) int { return cmp.Compare(a.DeviceType, b.DeviceType) })
	slices.SortFunc(f.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType))
	})
}

type pointKey struct {
	variant, device    string
	batch, concurrency int
}

func (p *Point) key() pointKey {
	return pointKey{p.Variant, p.DeviceType, p.Batch, p.Concurrency}
}

// Validate returns an error for the first value that no measurement can give.
func (f *File) Validate() error {
	if f.Version != Version {
		return fmt.Errorf("version is %d, this program reads %d: measure again with `sluice profile`", f.Version,
			Version)
	}
	if len(f.Points) > maxPoints || len(f.Loads) > maxPoints {
		return fmt.Errorf("%d points and %d loads, want at most %d of each", len(f.Points), len(f.Loads), maxPoints)
	}
	seen := make(map[pointKey]int, len(f.Points))
	for i := range f.Points {
		p := &f.Points[i]
		if err := p.validate(); err != nil {
			return fmt.Errorf("points[%d].%w", i, err)
		}
		if at, twice := seen[p.key()]; twice {
			return fmt.Errorf("points[%d] measures the same as points[%d]: %q on %q, batch %d, concurrency %d", i, at,
				p.Variant, p.DeviceType, p.Batch, p.Concurrency)
		}
		seen[p.key()] = i
	}
	loads := make(map[[2]string]int, len(f.Loads))
	for i, l := range f.Loads {
		key := [2]string{l.Variant, l.DeviceType}
		at, twice := loads[key]
		switch {
		case l.Variant == "":
			return fmt.Errorf("loads[%d].variant is empty", i)
		case l.DeviceType == "":
			return fmt.Errorf("loads[%d].device_type is empty", i)
		case !(l.Load >= 0 && l.Load <= maxMicros/1e3):
			return fmt.Errorf("loads[%d].load_ms is %v, want a number from 0 to %v", i, l.Load, maxMicros/1e3)
		case twice:
			return fmt.Errorf("loads[%d] measures the same as loads[%d]: %q on %q", i, at, l.Variant, l.DeviceType)
		}
		loads[key] = i
	}
	seenOverheads := make(map[string]bool)
	for i := range f.Overheads {
		o := &f.Overheads[i]
		if err := o.validate(); err != nil {
			return fmt.Errorf("overheads[%d].%w", i, err)
		}
		if seenOverheads[o.DeviceType] {
			return fmt.Errorf("overheads[%d].device_type is %q, as that of another", i, o.DeviceType)
		}
		seenOverheads[o.DeviceType] = true
	}
	return errors.Join(validLengths(f.Lengths), validMemory(f.Memory), validSpares(f.Spares),
		validAccelerators(f.Accelerators), validAccuracies(f.Accuracies), validConfidences(f.Confidences),
		validFailures(f.Failures))
}

// validate returns an error that begins with the field's name.
func (o *Overhead) validate() error {
	if o.DeviceType == "" {
		return errors.New("device_type is empty")
	}
	for _, v := range []struct {
		name string
		us   float64
	}{{"batch_us", o.Batch}, {"query_us", o.Query}, {"queries", float64(o.Queries)}} {
		if !(v.us >= 0 && v.us <= maxMicros) {
			return fmt.Errorf("%s is %v, want a number from 0 to %v", v.name, v.us, float64(maxMicros))
		}
	}
	return nil
}

// validate returns an error that begins with the field's name.
func (p *Point) validate() error {
	switch {
	case p.Variant == "":
		return errors.New("variant is empty")
	case p.DeviceType == "":
		return errors.New("device_type is empty")
	case p.Batch < 1 || p.Batch > maxBatch:
		return fmt.Errorf("batch is %d, want 1 to %d", p.Batch, maxBatch)
	case p.Concurrency < 1 || p.Concurrency > maxBatch:
		return fmt.Errorf("concurrency is %d, want 1 to %d", p.Concurrency, maxBatch)
	case p.Samples < 0 || p.Samples == 0 && !p.Interpolated:
		return fmt.Errorf("samples is %d, want at least 1", p.Samples)
	case !(p.StdDev >= 0 && p.StdDev <= maxMicros):
		return fmt.Errorf("stddev_us is %v, want a number from 0 to %v", p.StdDev, float64(maxMicros))
	}
	last := 0.0
	for _, v := range []struct {
		name string
		us   float64
		rank bool // a percentile: not below the one before it
	}{
		{"mean_us", p.Mean, false}, {"p50_us", p.P50, true}, {"p90_us", p.P90, true}, {"p95_us", p.P95, true},
		{"p99_us", p.P99, true},
	} {
		if !(v.us >= 0.001 && v.us <= maxMicros) {
			return fmt.Errorf("%s is %v, want a number from 0.001 to %v", v.name, v.us, float64(maxMicros))
		}
		if v.rank && v.us < last {
			return fmt.Errorf("%s is %v, less than the percentile below it, %v", v.name, v.us, last)
		}
		if v.rank {
			last = v.us
		}
	}
	return nil
}

// Merge returns one profile with the points of several. Where two have the same point, the later argument counts.
func Merge(files ...*File) (*File, error) {
	out := &File{Version: Version}
	points, loads, overheads := map[pointKey]int{}, map[[2]string]int{}, map[string]int{}
	for i, f := range files {
		if err := f.Validate(); err != nil {
			return nil, fmt.Errorf("profile %d of %d: %w", i+1, len(files), err)
		}
		if i == 0 {
			out.Host, out.DeviceType = f.Host, f.DeviceType
		}
		if out.Host != f.Host {
			out.Host = Host{}
		}
		if out.DeviceType != f.DeviceType {
			out.DeviceType = ""
		}
		if f.Created.After(out.Created) {
			out.Created = f.Created
		}
		for _, p := range f.Points {
			if at, have := points[p.key()]; have {
				out.Points[at] = p
				continue
			}
			points[p.key()] = len(out.Points)
			out.Points = append(out.Points, p)
		}
		for _, l := range f.Loads {
			key := [2]string{l.Variant, l.DeviceType}
			if at, have := loads[key]; have {
				out.Loads[at] = l
				continue
			}
			loads[key] = len(out.Loads)
			out.Loads = append(out.Loads, l)
		}
		for _, x := range f.Overheads {
			if at, have := overheads[x.DeviceType]; have {
				out.Overheads[at] = x
				continue
			}
			overheads[x.DeviceType] = len(out.Overheads)
			out.Overheads = append(out.Overheads, x)
		}
		for _, a := range f.Accuracies {
			out.SetAccuracy(a)
		}
		for _, c := range f.Confidences {
			out.SetConfidence(c)
		}
		out.EachQuery = append(out.EachQuery, f.EachQuery...)
		out.mergeLengths(f)
		out.mergeMemory(f)
		out.mergeFailures(f)
	}
	out.sort()
	return out, nil
}

// Measurements returns the measured points with the ids of spec. A name that spec does not have is an error, because
// otherwise part of a profile would be ignored without notice. Only removes such points.
func (f *File) Measurements(spec *serving.Spec) (serving.Measurements, error) {
	var m serving.Measurements
	if err := f.Validate(); err != nil {
		return m, fmt.Errorf("profile: %w", err)
	}
	ids := resolve(spec)
	for i := range f.Points {
		p := &f.Points[i]
		vs, d, err := ids.resolve(p.Variant, p.DeviceType)
		if err != nil {
			return serving.Measurements{}, fmt.Errorf("profile: points[%d].%w", i, err)
		}
		if p.Interpolated {
			continue
		}
		for _, v := range vs {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				Variant: v, DeviceType: d, Items: p.Batch, Concurrency: p.Concurrency, Samples: p.Samples,
				Mean: micros(p.Mean), StdDev: micros(p.StdDev), P50: micros(p.P50), P90: micros(p.P90),
				P95: micros(p.P95),
				P99: micros(p.P99),
			})
		}
	}
	lengths, err := f.lengthPointsOf(ids)
	if err != nil {
		return serving.Measurements{}, err
	}
	m.Length = lengths
	for i, l := range f.Loads {
		vs, d, err := ids.resolve(l.Variant, l.DeviceType)
		if err != nil {
			return serving.Measurements{}, fmt.Errorf("profile: loads[%d].%w", i, err)
		}
		for _, v := range vs {
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: v, DeviceType: d, Load: time.Duration(math.Round(l.Load * 1e6)),
			})
		}
	}
	for i, o := range f.Overheads {
		d, ok := ids.devices[o.DeviceType]
		if !ok {
			return serving.Measurements{}, fmt.Errorf("profile: overheads[%d].device_type is %q, which is not "+
				"configured; measure again with `sluice profile`", i, o.DeviceType)
		}
		m.Overhead = append(m.Overhead, serving.Overhead{
			DeviceType: d, Batch: micros(o.Batch), Query: micros(o.Query),
		})
	}
	for i, x := range f.limits() {
		vs, d, err := ids.resolve(x.Variant, x.DeviceType)
		if err != nil {
			return serving.Measurements{}, fmt.Errorf("profile: memory[%d].%w", i, err)
		}
		for _, v := range vs {
			m.Memory = append(m.Memory, serving.MemoryPoint{
				Variant: v, DeviceType: d, Loaded: x.Loaded, Items: x.Batch, Largest: x.AtBatch, MostItems: x.Most,
			})
		}
	}
	return m, nil
}

// MeasurementsOf returns the measured points of one variant: names are unique within an app only.
func (f *File) MeasurementsOf(spec *serving.Spec, v serving.VariantID) (serving.Measurements, error) {
	alone := &serving.Spec{DeviceTypes: spec.DeviceTypes, Variants: spec.Variants[v : v+1]}
	kept, _ := f.Only(alone)
	m, err := kept.Measurements(alone)
	return m.Of(func(serving.VariantID, serving.DeviceTypeID) (serving.VariantID, bool) { return v, true }), err
}

// Only returns the part of the profile whose names spec has, and the number of points and loads that it leaves out.
func (f *File) Only(spec *serving.Spec) (kept *File, left int) {
	ids := resolve(spec)
	out := *f
	out.Points = slices.DeleteFunc(slices.Clone(f.Points), func(p Point) bool {
		_, _, err := ids.resolve(p.Variant, p.DeviceType)
		return err != nil
	})
	out.Lengths = slices.DeleteFunc(slices.Clone(f.Lengths), func(p LengthPoint) bool {
		_, _, err := ids.resolve(p.Variant, p.DeviceType)
		return err != nil
	})
	out.Loads = slices.DeleteFunc(slices.Clone(f.Loads), func(l Load) bool {
		_, _, err := ids.resolve(l.Variant, l.DeviceType)
		return err != nil
	})
	out.Overheads = slices.DeleteFunc(slices.Clone(f.Overheads), func(x Overhead) bool {
		_, ok := ids.devices[x.DeviceType]
		return !ok
	})
	out.Memory = slices.DeleteFunc(slices.Clone(f.Memory), func(x Memory) bool {
		_, _, err := ids.resolve(x.Variant, x.DeviceType)
		return err != nil
	})
	out.Spares = slices.DeleteFunc(slices.Clone(f.Spares), func(x SpareMemory) bool {
		_, ok := ids.devices[x.DeviceType]
		return !ok
	})
	out.Failures = slices.DeleteFunc(slices.Clone(f.Failures), func(x Failure) bool {
		_, _, err := ids.resolve(x.Variant, x.DeviceType)
		return err != nil
	})
	out.Whole = slices.DeleteFunc(slices.Clone(f.Whole), func(name string) bool { return len(ids.variants[name]) == 0 })
	out.Accuracies = slices.DeleteFunc(slices.Clone(f.Accuracies), func(x Accuracy) bool {
		return len(ids.variants[x.Variant]) == 0
	})
	out.EachQuery = slices.DeleteFunc(slices.Clone(f.EachQuery), func(name string) bool {
		return len(ids.variants[name]) == 0
	})
	return &out, len(f.Points) - len(out.Points) + len(f.Loads) - len(out.Loads)
}

type names struct {
	variants map[string][]serving.VariantID
	devices  map[string]serving.DeviceTypeID
}

func resolve(spec *serving.Spec) names {
	n := names{map[string][]serving.VariantID{}, map[string]serving.DeviceTypeID{}}
	for i, v := range spec.Variants {
		n.variants[v.Name] = append(n.variants[v.Name], serving.VariantID(i))
	}
	for i, d := range spec.DeviceTypes {
		n.devices[d.Name] = serving.DeviceTypeID(i)
	}
	return n
}

// resolve returns ids. Variants of one name, in several apps, are the same model (config.File.Resolve), and so have the
// same latencies. Its errors begin with the field's name.
func (n names) resolve(variant, device string) ([]serving.VariantID, serving.DeviceTypeID, error) {
	vs := n.variants[variant]
	if len(vs) == 0 {
		return nil, 0, fmt.Errorf("variant is %q, which is not configured; measure again with `sluice profile`",
			variant)
	}
	d, ok := n.devices[device]
	if !ok {
		return nil, 0, fmt.Errorf("device_type is %q, which is not configured; measure again with `sluice profile`",
			device)
	}
	return vs, d, nil
}

func micros(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }
