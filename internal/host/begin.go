package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// lookTime is about how long a start looks at models, all together, and leastLook and longestLook how long at one,
	// beside the time to load it and to run it once.
	lookTime, leastLook, longestLook = 3 * time.Second, 2 * time.Millisecond, 300 * time.Millisecond
	// AssumedLatency is believed of one item of a model that could not be run for want of inputs that it takes, but no
	// more than one part in assumedShare of the app's objective: what is believed to be late is not tried.
	AssumedLatency, assumedShare = 10 * time.Millisecond, 8
)

// VariantOn is a variant on a device type, by their names.
type VariantOn struct{ Variant, Device string }

// Compare orders by variant, then by device type.
func (c VariantOn) Compare(o VariantOn) int {
	return cmp.Or(cmp.Compare(c.Variant, o.Variant), cmp.Compare(c.Device, o.Device))
}

// Known is what is known of the models before a server measures them.
type Known struct {
	File *profiler.File     // what was measured, seen in a look, and failed
	Rest map[VariantOn]bool // what is not measured well
}

// Begin is Profile for a server that must start even without a profile, within seconds. If there is none, it
// takes what MeasuredProfile of an earlier start has, and has a look at the other models: how long they take is not
// known well then, and the server measures it while it is idle. An app with a model that cannot be loaded is left out
// and announced; the server then says why it is not ready. A system that learns latency while it serves starts without
// a profile, unless there is a functions' store: functions are planned for before they run.
func (o *Opened) Begin(ctx context.Context, paths ...string) (*Profiled, error) {
	if len(o.Spec().Apps) == 0 {
		return o.WithMeasurements(serving.Measurements{}, Measured)
	}
	if len(paths) > 0 || len(o.tables.Profiles) > 0 || !o.Fleet().RunsModels() {
		return o.Profile(paths...)
	}
	known := Known{o.earlier(), make(map[VariantOn]bool)}
	if o.system.Options.Learn && o.file.Store == "" {
		if p, err := o.ProfileOf(known.File); err == nil && p.covers() {
			return p, nil
		}
		return o.WithMeasurements(serving.Measurements{}, unknown)
	}
	p, err := o.BeginKnowing(ctx, known)
	if err != nil {
		return nil, err
	}
	if len(p.Unmeasured()) > 0 {
		return p, nil
	}
	return p, p.keepKnown()
}

// BeginKnowing gets latencies to begin with: what is known already, what other runs on such a machine have measured of
// the same models, and what a look shows of the others. Apps whose models cannot be loaded are left out and announced.
// Models that cannot be run for want of inputs have an assumed latency.
func (o *Opened) BeginKnowing(ctx context.Context, known Known) (*Profiled, error) {
	for {
		var err error
		if o, err = o.oneAtATime(known.File.Whole); err != nil {
			return nil, err
		}
		if known, err = o.look(ctx, known); err != nil {
			return nil, err
		}
		names := o.Unbatched(known.File)
		if len(names) == 0 {
			break
		}
		known.File = known.File.Without(names) // they are looked at again, one query at a time
		known.File.Whole = append(known.File.Whole, names...)
	}
	kept, err := o.withoutBroken(known.File)
	if err != nil {
		return nil, err
	}
	f, _ := known.File.Only(kept.Spec())
	out, err := kept.ProfileOf(f)
	if err != nil {
		return nil, err
	}
	return out.Assuming(known)
}

// BeginLike gets latencies for a configuration of the same models as p's, which are not looked at again.
func (o *Opened) BeginLike(ctx context.Context, p *Profiled) (*Profiled, error) {
	o.shown = p.shown
	return o.BeginKnowing(ctx, p.begun)
}

// oneAtATime returns the configuration with variants that run one query at a time, since their models do not batch.
func (o *Opened) oneAtATime(variants []string) (*Opened, error) {
	models := o.ModelsOf(variants)
	if len(models) == 0 {
		return o, nil
	}
	out := *o
	var err error
	out.file, out.single = o.file.WithWhole(models), variants
	if out.tables, err = out.file.Resolve(); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return &out, nil
}

// Single are the variants that were found not to batch.
func (o *Opened) Single() []string { return o.single }

// ModelsOf are the models of variants, by their names, that batch.
func (o *Opened) ModelsOf(variants []string) map[string]bool {
	models := make(map[string]bool)
	for v := range o.tables.Variants {
		if o.tables.Variants[v].Batched && slices.Contains(variants, o.Spec().Variants[v].Name) {
			models[o.tables.Variants[v].Model] = true
		}
	}
	return models
}

// Unbatched lists the variants that do not run with two items, or with one, or whose items change each other's answers,
// and of which shapes alone say that they batch.
func (o *Opened) Unbatched(f *profiler.File) (names []string) {
	for _, x := range f.Failures {
		for v := range o.tables.Variants {
			if o.Spec().Variants[v].Name == x.Variant && (x.Batch == 1 || x.Batch == 2) &&
				o.Fleet().SeemsBatched(serving.VariantID(v)) {
				names = append(names, x.Variant)
				break
			}
		}
	}
	return names
}

// look adds what other runs know, and what a look shows, of the variants of which nothing is known.
func (o *Opened) look(ctx context.Context, known Known) (Known, error) {
	fleet := o.Fleet()
	run, err := fleet.Backends(nil)
	if err != nil {
		return known, err
	}
	defer run.Close()
	sites, left := fleet.Sites()
	for _, x := range left {
		o.say(x)
	}
	all := []*profiler.File{known.File}
	if len(known.File.Points)+len(known.File.Failures) == 0 {
		all = nil
	}
	rest := maps.Clone(known.Rest)
	var looks []profiler.Config
	var ended []func(*profiler.File)
	defer func() {
		for _, end := range ended {
			end(nil)
		}
	}()
	n := 0
	for _, s := range sites {
		c, end := fleet.Measuring(ctx, run, s, "")
		c.Variants = nil
		for _, v := range s.Variants {
			cell := VariantOn{o.Spec().Variants[v].Name, o.Spec().DeviceTypes[s.Device].Name}
			if known.File.Has(cell.Variant, cell.Device) || known.File.Failure(cell.Variant, cell.Device) != nil {
				continue
			}
			if kept := o.kept(&c, v); kept != nil {
				all = append(all, kept)
				delete(rest, cell)
				continue
			}
			rest[cell] = true
			c.Variants = append(c.Variants, v)
			n++
		}
		looks, ended = append(looks, c), append(ended, end)
	}
	each := min(max(lookTime/time.Duration(max(n, 1)), leastLook), longestLook)
	for k, c := range looks {
		if len(c.Variants) == 0 {
			continue
		}
		f, err := profiler.Look(ctx, c, each, o.MeasuredSoFar("looking at"))
		if err != nil {
			return known, err
		}
		ended[k](f)
		ended[k] = func(*profiler.File) {}
		all = append(all, f)
	}
	f, err := profiler.Merge(all...)
	if err != nil {
		return known, err
	}
	f.Whole = known.File.Whole
	if len(all) > 1 || all[0] != known.File {
		f.EachQuery = run.CalledForEachQuery(ctx)
	}
	return Known{f, rest}, nil
}

// MeasuredSoFar shows the progress of measurements.
func (o *Opened) MeasuredSoFar(doing string) func(done, total int, what string) {
	return func(done, total int, what string) {
		o.options.Progress(float64(done)/float64(max(total, 1)), doing+" "+what)
	}
}

// Assuming returns a copy that believes a latency of variants that did not run, and that remembers what is to be
// measured. It announces both.
func (p *Profiled) Assuming(known Known) (*Profiled, error) {
	for _, x := range known.File.Failures {
		switch {
		case len(variantsNamed(p.Spec(), x.Variant)) == 0: // of an app that is left out
		case x.Batch > 1:
			p.Notice("variant %q runs with fewer than %d items at a time only: %s", x.Variant, x.Batch, x.Reason)
		default:
			p.Notice("%s", UnmeasuredText(&x))
		}
	}
	out, err := p.Assumed(known.File)
	if err != nil {
		return nil, err
	}
	out.begun = known
	return out, nil
}

// UnmeasuredText says that a variant is served unmeasured, and how to have it measured.
func UnmeasuredText(x *profiler.Failure) string {
	return fmt.Sprintf("variant %q is served unmeasured, and its latency learned from its first queries: %s; inputs "+
		"that it takes have it measured: give them as model_warmup in its config.pbtxt (docs/profiling.md)", x.Variant,
		x.Reason)
}

// Assumed returns a copy that believes a latency of variants that did not run.
func (p *Profiled) Assumed(f *profiler.File) (*Profiled, error) {
	spec, m := p.Spec(), p.measurements
	m.Latency = m.Latency[:len(m.Latency):len(m.Latency)]
	for _, x := range f.Failures {
		for d := range spec.DeviceTypes {
			if x.Batch > 1 || spec.DeviceTypes[d].Name != x.DeviceType {
				continue
			}
			for _, v := range variantsNamed(spec, x.Variant) {
				m.Latency = append(m.Latency, AssumedPoint(spec, v, serving.DeviceTypeID(d)))
			}
		}
	}
	return p.WithMeasurements(m, Measured)
}

// variantsNamed are the variants of a name: the same model, in several apps.
func variantsNamed(spec *serving.Spec, name string) (out []serving.VariantID) {
	for v := range spec.Variants {
		if spec.Variants[v].Name == name {
			out = append(out, serving.VariantID(v))
		}
	}
	return out
}

// Unmeasured lists what of the profile is not measured well, in order.
func (p *Profiled) Unmeasured() (out []VariantOn) {
	for cell := range p.begun.Rest {
		if len(variantsNamed(p.Spec(), cell.Variant)) > 0 {
			out = append(out, cell)
		}
	}
	slices.SortFunc(out, VariantOn.Compare)
	return out
}

// AssumedPoint is what is believed of a variant that did not run: little, and that it scatters widely.
func AssumedPoint(spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID) serving.LatencyPoint {
	l := AssumedLatency
	if slo := spec.Apps[spec.Stages[spec.Variants[v].Stage].App].SLO.Latency; slo > 0 {
		l = max(min(l, slo/assumedShare), time.Microsecond)
	}
	return serving.LatencyPoint{Variant: v, DeviceType: d, Items: 1, Concurrency: 1, Mean: l, StdDev: l / 2, P50: l,
		P90: l, P95: l, P99: l}
}
