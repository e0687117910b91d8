package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Spec describes a workload as plain data. It is the form of workload files.
type Spec struct {
	Seed uint64 `json:"seed" yaml:"seed"`
	// seconds; 0 means as long as segments or traces last
	DurationS float64 `json:"duration_s,omitempty" yaml:"duration_s,omitempty"`
	// most queries of all apps; 0 for no limit
	MaxCount int64 `json:"max_count,omitempty" yaml:"max_count,omitempty"`
	// entries, each the load of one app. Required.
	Apps []AppSpec `json:"apps" yaml:"apps"`

	// Tenants are the names of the world's tenants, in the order of its table. They are not part of a workload file;
	// the caller sets them where entries name tenants.
	Tenants []string `json:"-" yaml:"-"`
}

// AppSpec is one entry of a workload: load of one app. Several entries may name the same app.
type AppSpec struct {
	// name of the app. Required.
	App string `json:"app" yaml:"app"`
	// poisson (default), poisson-ms, uniform, gamma, trace or sessions
	Process string `json:"process,omitempty" yaml:"process,omitempty"`
	// of gamma gaps; a small shape is bursty
	Shape float64 `json:"shape,omitempty" yaml:"shape,omitempty"`
	// constant rate in queries/s
	Rate        float64   `json:"rate,omitempty" yaml:"rate,omitempty"`
	Rates       []Segment `json:"rates,omitempty" yaml:"rates,omitempty"`             // changing rate, instead of Rate
	Interpolate string    `json:"interpolate,omitempty" yaml:"interpolate,omitempty"` // step (default) or linear
	// file of arrival times, which the caller reads into Trace
	TraceFile string    `json:"trace,omitempty" yaml:"trace,omitempty"`
	Items     ItemsSpec `json:"items,omitzero" yaml:"items,omitempty"`
	// lengths of the queries, in tokens or pixels; without them no length is known
	Lengths ItemsSpec `json:"lengths,omitzero" yaml:"lengths,omitempty"`
	// clients that join and leave, when Process is sessions
	Sessions    SessionsSpec `json:"sessions,omitzero" yaml:"sessions,omitempty"`
	Priority    int32        `json:"priority,omitempty" yaml:"priority,omitempty"`
	TimeoutMS   float64      `json:"timeout_ms,omitempty" yaml:"timeout_ms,omitempty"` // 0 means the app's SLO
	MinAccuracy float64      `json:"min_accuracy,omitempty" yaml:"min_accuracy,omitempty"`
	// name of the tenant that sends the queries; empty for none
	Tenant string `json:"tenant,omitempty" yaml:"tenant,omitempty"`

	// Trace has the arrival times when Process is trace, Samples the number of labelled inputs. They are not part of a
	// workload file; the caller that reads the files sets them.
	Trace   []serving.Time `json:"-" yaml:"-"`
	Samples int32          `json:"-" yaml:"-"`
}

// Segment is a corner of a rate function, with Rate in queries/s. Either all segments of an entry have a duration and
// follow each other, or all have a start. With interpolate linear, Rate holds at the start, and the rate is a straight
// line to the next segment's.
type Segment struct {
	DurationS float64 `json:"duration_s,omitempty" yaml:"duration_s,omitempty"`
	AtS       float64 `json:"at_s,omitempty" yaml:"at_s,omitempty"`
	Rate      float64 `json:"rate" yaml:"rate"`
}

// ItemsSpec describes a distribution of query sizes, or of lengths. The zero value means one item for each query, and
// that no length is known.
type ItemsSpec struct {
	// constant (default), uniform, lognormal, gaussian, histogram, mixture or file
	Distribution string `json:"distribution,omitempty" yaml:"distribution,omitempty"`
	Value        int32  `json:"value,omitempty" yaml:"value,omitempty"` // of constant; 0 means 1
	Min          int32  `json:"min,omitempty" yaml:"min,omitempty"`     // of uniform and gaussian
	// of uniform, lognormal and gaussian
	Max       int32       `json:"max,omitempty" yaml:"max,omitempty"`
	Mu        float64     `json:"mu,omitempty" yaml:"mu,omitempty"`               // of lognormal
	Sigma     float64     `json:"sigma,omitempty" yaml:"sigma,omitempty"`         // of lognormal
	Mean      float64     `json:"mean,omitempty" yaml:"mean,omitempty"`           // of gaussian
	Deviation float64     `json:"deviation,omitempty" yaml:"deviation,omitempty"` // of gaussian
	Sizes     []int32     `json:"sizes,omitempty" yaml:"sizes,omitempty"`         // of histogram
	Weights   []float64   `json:"weights,omitempty" yaml:"weights,omitempty"`     // of histogram and mixture
	Parts     []ItemsSpec `json:"parts,omitempty" yaml:"parts,omitempty"`         // of mixture
	// rounds sizes of any distribution up to multiples of it; 0 leaves them
	RoundUpTo int32 `json:"round_up_to,omitempty" yaml:"round_up_to,omitempty"`
	// of file: has one number a line, which the caller reads into Listed
	File string `json:"file,omitempty" yaml:"file,omitempty"`

	// Listed are the numbers of the file: the queries have them in their order, and from the first again after the
	// last. They are not part of a workload file.
	Listed []int32 `json:"-" yaml:"-"`
}

// IsZero reports whether nothing is said.
func (s ItemsSpec) IsZero() bool { return reflect.ValueOf(s).IsZero() }

// Build returns the distribution. Errors begin with the path of the field.
func (s ItemsSpec) Build() (Sizes, error) {
	if s.RoundUpTo < 0 || s.RoundUpTo > MaxItems {
		return nil, fmt.Errorf("round_up_to: is %d, want a number in [0, %d]", s.RoundUpTo, MaxItems)
	}
	out, err := s.build()
	if err != nil || s.RoundUpTo <= 1 {
		return out, err
	}
	h, err := FromMix(RoundUp(out.Mix(), s.RoundUpTo))
	if err != nil {
		return nil, fmt.Errorf("round_up_to: %w", err)
	}
	return h, nil
}

func (s *ItemsSpec) build() (Sizes, error) {
	switch s.Distribution {
	case "", "constant":
		v := s.Value
		if v == 0 {
			v = 1
		}
		if v < 1 || v > MaxItems {
			return nil, fmt.Errorf("value: is %d, want a number in [1, %d]", s.Value, MaxItems)
		}
		return ConstantSize(v), nil
	case "uniform":
		if s.Min < 1 || s.Max < s.Min || s.Max > MaxItems {
			return nil, fmt.Errorf("min and max: are %d and %d, want 1 <= min <= max <= %d", s.Min, s.Max, MaxItems)
		}
		return UniformSize{Min: s.Min, Max: s.Max}, nil
	case "lognormal":
		return NewLognormal(s.Mu, s.Sigma, s.Max)
	case "gaussian":
		return NewGaussian(s.Mean, s.Deviation, s.Min, s.Max)
	case "histogram":
		h, err := NewHistogram(s.Sizes, s.Weights)
		if err != nil {
			return nil, fmt.Errorf("sizes: %w", err)
		}
		return h, nil
	case "mixture":
		return s.mixture()
	case "file":
		if len(s.Listed) == 0 {
			return nil, fmt.Errorf("file: %q was not read or holds no number", s.File)
		}
		return newListed(s.Listed), nil
	}
	return nil, fmt.Errorf("distribution: is %q, want constant, uniform, lognormal, gaussian, histogram, mixture or "+
		"file", s.Distribution)
}

func (s *ItemsSpec) mixture() (Sizes, error) {
	parts := make([]serving.Mix, len(s.Parts))
	for i := range s.Parts {
		p, err := s.Parts[i].Build()
		if err != nil {
			return nil, fmt.Errorf("parts[%d].%w", i, err)
		}
		parts[i] = p.Mix()
	}
	mix, err := Blend(parts, s.Weights)
	if err != nil {
		return nil, fmt.Errorf("parts: %w", err)
	}
	return FromMix(mix)
}

// Duration returns the length of the workload: duration_s where it is given, else that of the longest entry. It is 0
// when nothing limits the length.
func (s *Spec) Duration() time.Duration {
	if s.DurationS > 0 {
		return time.Duration(s.DurationS * 1e9)
	}
	longest := time.Duration(0)
	for i := range s.Apps {
		a := &s.Apps[i]
		if a.Process == "trace" {
			if n := len(a.Trace); n > 0 {
				longest = max(longest, time.Duration(a.Trace[n-1])+1)
			}
			continue
		}
		total := 0.0
		for _, g := range a.Rates {
			total += g.DurationS
		}
		longest = max(longest, time.Duration(total*1e9))
	}
	return longest
}

// RateFunction returns the app's rate over time. It returns an error for a trace or sessions, which have none, and for
// fields out of range, with their paths.
func (a *AppSpec) RateFunction() (*Rate, error) {
	if a.Process == "trace" || a.Process == "sessions" {
		return nil, fmt.Errorf("process: is %s, which has no rate function", a.Process)
	}
	linear := false
	switch a.Interpolate {
	case "", "step":
	case "linear":
		linear = true
	default:
		return nil, fmt.Errorf("interpolate: is %q, want step or linear", a.Interpolate)
	}
	if len(a.Rates) == 0 {
		if !(a.Rate > 0 && a.Rate <= MaxRate) {
			return nil, fmt.Errorf("rate: is %v, want a number in (0, %g], or give rates", a.Rate, float64(MaxRate))
		}
		return NewRate([]Point{{Rate: a.Rate}}, false)
	}
	if a.Rate != 0 {
		return nil, errors.New("rate: given beside rates; keep one")
	}
	timed := a.Rates[0].DurationS != 0
	points := make([]Point, 0, len(a.Rates))
	at := 0.0
	for i, g := range a.Rates {
		if (g.DurationS != 0) != timed || (timed && g.AtS != 0) {
			return nil, fmt.Errorf("rates[%d]: mixes duration_s and at_s; use the same one in every segment", i)
		}
		if timed && !(g.DurationS > 0 && g.DurationS <= MaxSeconds) {
			return nil, fmt.Errorf("rates[%d].duration_s: is %v, want a number in (0, %g]", i, g.DurationS,
				float64(MaxSeconds))
		}
		if !timed {
			at = g.AtS
		}
		points = append(points, Point{At: at, Rate: g.Rate})
		at += g.DurationS
	}
	r, err := NewRate(points, linear)
	if err != nil {
		return nil, fmt.Errorf("rates%w", err)
	}
	return r, nil
}

// Validate returns the errors of Source, except those of unknown apps. Each begins with the path of its field.
func (s *Spec) Validate() error {
	_, err := s.build(func(string) (serving.AppID, error) { return 0, nil })
	return err
}

// Source returns the arrivals of the workload. resolve returns the id of an app by name. Errors begin with the path of
// their field. Every call returns the same arrivals, from the start.
func (s *Spec) Source(resolve func(app string) (serving.AppID, error)) (Source, error) {
	return s.build(resolve)
}

func (s *Spec) build(resolve func(string) (serving.AppID, error)) (Source, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !(s.DurationS >= 0 && s.DurationS <= MaxSeconds) {
		bad("duration_s: is %v, want a number in [0, %g]", s.DurationS, float64(MaxSeconds))
	}
	if s.MaxCount < 0 {
		bad("max_count: is %d, want at least 0", s.MaxCount)
	}
	if len(s.Apps) == 0 {
		bad("apps: is empty, want the load of at least one app")
	}
	sources := make([]Source, 0, len(s.Apps))
	for i := range s.Apps {
		src, err := s.buildApp(i, resolve)
		if err != nil {
			errs = append(errs, err)
		}
		sources = append(sources, src)
	}
	until := serving.Never
	if len(errs) == 0 {
		if d := s.Duration(); d > 0 {
			until = serving.Time(d)
		} else if s.MaxCount == 0 {
			bad("duration_s: is 0 and nothing else ends the load; give duration_s, max_count, or rates with duration_s")
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	count := int64(-1)
	if s.MaxCount > 0 {
		count = s.MaxCount
	}
	return Limit(Merge(sources...), until, count), nil
}

// checkTrace returns the errors of an entry whose process is trace.
func (a *AppSpec) checkTrace() (errs []error) {
	switch {
	case len(a.Trace) == 0 && a.TraceFile == "":
		errs = append(errs, errors.New("trace: is empty, want the file of arrival times"))
	case len(a.Trace) == 0:
		errs = append(errs, fmt.Errorf("trace: %q was not read or holds no arrival", a.TraceFile))
	case a.Rate != 0 || len(a.Rates) != 0:
		errs = append(errs, errors.New("rates: given beside a trace, which brings its own times; keep one"))
	}
	for k := 1; k < len(a.Trace); k++ {
		if a.Trace[k] < a.Trace[k-1] {
			return append(errs, fmt.Errorf("trace: entry %d is earlier than the one before it", k))
		}
	}
	return errs
}

// buildApp returns the source of entry i, with all errors of its fields joined.
func (s *Spec) buildApp(i int, resolve func(string) (serving.AppID, error)) (Source, error) {
	a := &s.Apps[i]
	var errs []error
	bad := func(err error) { errs = append(errs, fmt.Errorf("apps[%d].%w", i, err)) }
	id, err := resolve(a.App)
	if err != nil {
		bad(fmt.Errorf("app: %w", err))
	}
	if a.Priority < 0 {
		bad(fmt.Errorf("priority: is %d, want at least 0", a.Priority))
	}
	if !(a.TimeoutMS >= 0 && a.TimeoutMS <= 1e9) {
		bad(fmt.Errorf("timeout_ms: is %v, want a number in [0, 1e9]", a.TimeoutMS))
	}
	if !(a.MinAccuracy >= 0 && a.MinAccuracy <= 1) {
		bad(fmt.Errorf("min_accuracy: is %v, want a number in [0, 1]", a.MinAccuracy))
	}
	tenant := 1 + slices.Index(s.Tenants, a.Tenant)
	if a.Tenant != "" && tenant == 0 && s.Tenants != nil {
		bad(fmt.Errorf("tenant: there is no %q, want one of %q", a.Tenant, s.Tenants))
	}
	sizes, err := a.Items.Build()
	if err != nil {
		bad(fmt.Errorf("items.%w", err))
	}
	var lengths Sizes
	if !a.Lengths.IsZero() {
		if lengths, err = a.Lengths.Build(); err != nil {
			bad(fmt.Errorf("lengths.%w", err))
		}
	}
	template := Arrival{
		Tenant: int32(tenant),
		App:    id, Priority: a.Priority, MinAccuracy: a.MinAccuracy, Variant: serving.None, Items: 1, Sample: -1,
		Timeout: time.Duration(math.Round(a.TimeoutMS * 1e6)),
	}
	if a.Process == "sessions" {
		if err := a.checkSessions(s.Duration()); err != nil {
			bad(err)
		}
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		return s.sessions(i, template, sizes, lengths), nil
	}
	if a.Sessions != (SessionsSpec{}) {
		bad(fmt.Errorf("sessions: given, but process is %q; make it sessions", a.Process))
	}
	var times Times
	if a.Process == "trace" {
		for _, err := range a.checkTrace() {
			bad(err)
		}
		times = NewTrace(a.Trace)
	} else if process, err := a.process(); err != nil {
		bad(err)
	} else if rate, err := a.RateFunction(); err != nil {
		bad(err)
	} else {
		times = process(rate, Rand(s.Seed, s.purpose("arrivals", i)))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	src := Source(&App{
		Times: times, Template: template,
		Sizes: sizes, SizeRand: Rand(s.Seed, s.purpose("items", i)),
		Lengths: lengths, LengthRand: Rand(s.Seed, s.purpose("lengths", i)),
		Samples: a.Samples, SampleRand: Rand(s.Seed, s.purpose("samples", i)),
	})
	// Segments with durations end the load of their entry, even if other entries continue.
	if total := (&Spec{Apps: []AppSpec{*a}}).Duration(); total > 0 {
		src = Limit(src, serving.Time(total), -1)
	}
	return src, nil
}

// purpose returns the name of a purpose for entry i. It contains the index, because two entries may name the same app.
func (s *Spec) purpose(what string, i int) string {
	return fmt.Sprintf("%s/%d/%s", what, i, s.Apps[i].App)
}

// process returns a function that makes the entry's arrival times.
func (a *AppSpec) process() (func(*Rate, *rand.Rand) Times, error) {
	if a.Shape != 0 && a.Process != "gamma" {
		return nil, fmt.Errorf("shape: is %v, but only gamma has one", a.Shape)
	}
	var gaps Gaps
	switch a.Process {
	case "", "poisson":
		gaps = Poisson{}
	case "poisson-ms":
		return func(rate *Rate, r *rand.Rand) Times { return NewWholeMilliseconds(rate, r) }, nil
	case "uniform":
		gaps = Uniform{}
	case "gamma":
		g, err := NewGamma(a.Shape)
		if err != nil {
			return nil, fmt.Errorf("shape: %w", err)
		}
		gaps = g
	default:
		return nil, fmt.Errorf("process: is %q, want poisson, poisson-ms, uniform, gamma, trace or sessions", a.Process)
	}
	return func(rate *Rate, r *rand.Rand) Times { return NewProcess(rate, gaps, r) }, nil
}
