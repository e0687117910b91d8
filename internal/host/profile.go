package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// PlannedStatistic is the statistic of measured latencies that plans and rules use. The 95th percentile keeps head-room
// for noise (RAMSIS §6 plans with it, too). With the median, which Proteus takes, one batch in two is late when there
// is no slack.
const PlannedStatistic = "p95"

// origin is the source of latencies. A system that learns starts a run without them unless they were measured.
type origin int

// The sources of latencies.
const (
	Measured origin = iota // read from profile files
	assumed                // derived from the settings of fake workers
	unknown                // not known: the system learns them
)

// Profiled is an opened configuration with a latency profile of its variants.
type Profiled struct {
	*Opened
	measurements serving.Measurements
	latencies    profile.Profile
	Origin       origin
	begun        Known // what the latencies were made of; zero where they are those of given files
}

// Profile reads profile files: the given ones, or without any those that the configuration lists. If two files have the
// same point, the later file counts. Without any file, the latencies of fake workers follow from their settings; other
// workers are an error. Errors are of kind fault.Config.
func (o *Opened) Profile(paths ...string) (*Profiled, error) {
	if len(paths) == 0 {
		paths = o.tables.Profiles
	}
	var files []*profiler.File
	for _, p := range paths {
		f, err := profiler.ReadFile(p)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err)
		}
		kept, _ := f.Only(o.Spec())
		files = append(files, kept)
	}
	switch len(files) {
	case 0:
		return o.assumeLatencies()
	case 1:
		return o.ProfileOf(files[0])
	}
	merged, err := profiler.Merge(files...)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return o.ProfileOf(merged)
}

// ProfileOf uses a profile that is in memory, such as one of measuring.Measure. Every row must be of a variant and a
// device type of the configuration. An error is of kind fault.Config.
func (o *Opened) ProfileOf(f *profiler.File) (*Profiled, error) {
	o = o.rated(f).sized(f).eachQuery(f)
	m, err := f.Measurements(o.Spec())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return o.WithMeasurements(m, Measured)
}

// earlier returns the part of the profile of an earlier start that is of this configuration. What failed then is tried
// again.
func (o *Opened) earlier() *profiler.File {
	f, err := profiler.ReadFile(o.file.Path(machines.MeasuredProfile))
	if err != nil {
		return &profiler.File{Version: profiler.Version}
	}
	out, _ := f.Only(o.Spec())
	out.Failures = slices.DeleteFunc(out.Failures, func(x profiler.Failure) bool { return x.Batch < 2 })
	return out
}

// keepKnown writes the profile where all of it was known from other runs, so that it lies beside the configuration.
func (p *Profiled) keepKnown() error {
	file := p.ToKeep()
	if _, err := os.Stat(file); file == "" || err == nil {
		return nil
	}
	return p.begun.File.WriteFile(file)
}

// ToKeep is the file that keeps the measurements of this configuration for the next start; "" where it cannot be
// written.
func (p *Profiled) ToKeep() string {
	file := p.file.Path(machines.MeasuredProfile)
	if files.Writable(filepath.Dir(file)) != nil {
		return ""
	}
	return file
}

// Announce says that models are measured, and where that is kept.
func (p *Profiled) Announce(what string) {
	kept := "the profile is kept in " + p.file.Path(machines.MeasuredProfile)
	if err := files.Writable(filepath.Dir(p.file.Path(machines.MeasuredProfile))); err != nil {
		kept = fmt.Sprintf("every start does so, since the profile cannot be kept in %s: %v",
			p.file.Path(machines.MeasuredProfile), err)
	}
	p.say(what + "; " + kept)
}

// WithMeasurements makes a profile of measurements.
func (o *Opened) WithMeasurements(m serving.Measurements, from origin) (*Profiled, error) {
	if v := o.unrated(); v != serving.None && !o.lenient {
		return nil, fault.Errorf(fault.Config, "%s: variant %q does not say how accurate it is, and no profile does: "+
			"measure it with `sluice profile -f %s --samples DIR`, or --agree, or write its accuracy", o.Name(),
			o.Spec().Variants[v].Name, o.Name())
	}
	m = o.withCuts(m)
	statistic, err := profile.ParseStatistic(PlannedStatistic)
	if err != nil {
		return nil, err
	}
	table, err := profile.NewTable(o.Spec(), m, statistic)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return &Profiled{Opened: o, measurements: m, latencies: table, Origin: from}, nil
}

// StartsUnprofiled reports whether a run starts without latencies and learns them: the system learns, and nothing was
// measured.
func (p *Profiled) StartsUnprofiled() bool { return p.system.Options.Learn && p.Origin != Measured }

// Measurements are the points that the profile was made from. They are shared: do not change them.
func (p *Profiled) Measurements() serving.Measurements { return p.measurements }

// Latencies is the profile that plans and rules use.
func (p *Profiled) Latencies() profile.Profile { return p.latencies }

// Under returns a copy with another system.
func (p *Profiled) Under(s systems.System) *Profiled {
	out := *p
	out.Opened = p.Opened.Under(s)
	return &out
}

// WithOutputLimit returns a copy in which the outputs of a query may have so many bytes, whatever the file's
// server.limits.output says.
func (p *Profiled) WithOutputLimit(bytes config.Size) *Profiled {
	out, opened, file := *p, *p.Opened, *p.file
	file.Server.Limits.Output = bytes
	opened.file, out.Opened = &file, &opened
	return &out
}

// WithPlacement returns a copy with other instances in place of those that the file lists. The slice is kept.
func (p *Profiled) WithPlacement(list []config.Instance) *Profiled {
	return p.With(func(t *config.Resolved) { t.Placement, t.Proposed = list, false })
}

// Resized returns a copy with change[d] workers more of device type d, or fewer where it is negative. Instances that
// are placed on a removed worker are removed. moved has the new WorkerID by the old one, serving.None for a removed
// worker. The copy can be planned for and simulated. It cannot be served, since new workers have no backends.
func (p *Profiled) Resized(change []int) (out *Profiled, moved []serving.WorkerID, err error) {
	spec, moved, err := p.Spec().Resized(change)
	if err != nil {
		return nil, nil, err
	}
	return p.With(func(t *config.Resolved) {
		t.Spec = spec
		placed := t.Placement
		t.Placement = nil
		for _, i := range placed {
			if to := moved[i.Worker]; to != serving.None {
				i.Worker = to
				t.Placement = append(t.Placement, i)
			}
		}
	}), moved, nil
}

// With returns a copy with changed tables. change gets a copy of them.
func (p *Profiled) With(change func(*config.Resolved)) *Profiled {
	tables := *p.tables
	change(&tables)
	opened := *p.Opened
	opened.tables = &tables
	out := *p
	out.Opened = &opened
	return &out
}

// Begun is what the latencies were made of; zero where they are those of given files.
func (p *Profiled) Begun() Known { return p.begun }

// Grown returns a copy of a spec that has grown, with what is measured of it.
func (p *Profiled) Grown(spec *serving.Spec, m serving.Measurements, latencies profile.Profile) *Profiled {
	out := p.With(func(t *config.Resolved) { t.Spec = spec })
	out.measurements, out.latencies = m, latencies
	return out
}

// Expecting returns a copy whose first plan is made for these rates, in queries/s by app, instead of those that the
// configuration expects. Other apps keep theirs. It is for a server that goes on where another one stopped.
func (p *Profiled) Expecting(rates map[string]float64) *Profiled {
	return p.With(func(t *config.Resolved) {
		t.Apps = slices.Clone(t.Apps)
		for a := range t.Apps {
			if rate, ok := rates[t.Spec.Apps[a].Name]; ok && rate >= 0 {
				t.Apps[a].Demand = rate
			}
		}
	})
}

// covers reports whether the profile is complete: it has every variant on every device type that is to run it, and some
// variant on every part that can be measured.
func (p *Profiled) covers() bool {
	sites, _ := p.Fleet().Sites()
	for _, s := range sites {
		known, needed := 0, len(s.Variants)
		if p.Spec().DeviceTypes[s.Device].Part {
			needed = 1
		}
		for _, v := range s.Variants {
			if p.latencies.Latency(v, s.Device, 1, 1) < profile.Unknown {
				known++
			}
		}
		if known < needed {
			return false
		}
	}
	return true
}
