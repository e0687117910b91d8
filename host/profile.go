package host

import (
	"context"
	"fmt"
	"os"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// believedStatistic is the one of a measured latency that plans and rules believe in. The 95th percentile keeps
// head-room for noise (RAMSIS §6 plans with it, too); the median, which Proteus takes, makes one batch in two late when
// there is no slack.
const believedStatistic = "p95"

// origin says where latencies are from. A system that learns begins a run without them unless they were measured.
type origin int

const (
	measured origin = iota // in profiles
	assumed                // from the settings of fake workers
	unknown                // nowhere: they are learned
)

// Profiled is an opened configuration with what is believed of its latencies.
type Profiled struct {
	*Opened
	measurements serving.Measurements
	believed     profile.Profile
	origin       origin
}

// Profile reads profile files, later ones winning where two measure the same, or those that the configuration lists
// when no path is given. Where there are none at all and every worker is fake, latencies follow from the workers'
// settings. Otherwise the error, of kind fault.Config as all are, says what to run.
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
		return o.assume()
	case 1:
		return o.ProfileOf(files[0])
	}
	merged, err := profiler.Merge(files...)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return o.ProfileOf(merged)
}

// ProfileOf takes what was measured, by [Opened.Measure] for instance. Every row must be of a variant and a device type
// of the configuration. An error is of kind fault.Config.
func (o *Opened) ProfileOf(f *profiler.File) (*Profiled, error) {
	m, err := f.Measurements(o.Spec())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return o.believe(m, measured)
}

// RememberedProfile is the name of the file beside the sluice.yaml that [Opened.EnsureProfile] keeps its measurements
// in.
const RememberedProfile = "sluice.profile.json"

// EnsureProfile profiles in the way of a server that starts: from the given paths, else from what the configuration
// lists or assumes, else from what an earlier start has measured. Where there is nothing, or it lacks a variant that is
// to run, all is measured and kept in RememberedProfile; a system that learns latency while it serves begins without,
// unless functions are to be planned for before they run.
func (o *Opened) EnsureProfile(ctx context.Context, paths ...string) (*Profiled, error) {
	if len(o.Spec().Apps) == 0 {
		return o.believe(serving.Measurements{}, measured)
	}
	if len(paths) > 0 || len(o.tables.Profiles) > 0 || !o.runsModels() {
		return o.Profile(paths...)
	}
	remembered := o.file.Path(RememberedProfile)
	if _, err := os.Stat(remembered); err == nil {
		if p, err := o.Profile(remembered); err == nil && p.covers() {
			return p, nil
		}
	}
	if o.system.Options.Learn && o.file.Store == "" {
		return o.believe(serving.Measurements{}, unknown)
	}
	o.options.Notice(fmt.Sprintf("measuring the models on this machine; the profile is kept in %s", remembered))
	f, err := o.Measure(ctx, Measuring{File: remembered})
	if err != nil {
		return nil, err
	}
	return o.ProfileOf(f)
}

// believe makes a profile of measurements.
func (o *Opened) believe(m serving.Measurements, from origin) (*Profiled, error) {
	statistic, err := profile.ParseStatistic(believedStatistic)
	if err != nil {
		return nil, err
	}
	table, err := profile.NewTable(o.Spec(), m, statistic)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return &Profiled{Opened: o, measurements: m, believed: table, origin: from}, nil
}

// learnsAnew tells whether a run begins with no belief and learns all it needs.
func (p *Profiled) learnsAnew() bool { return p.system.Options.Learn && p.origin != measured }

// Measurements are what the profile was made of. They are shared and must not be changed.
func (p *Profiled) Measurements() serving.Measurements { return p.measurements }

// Believed is what plans and rules believe of latencies.
func (p *Profiled) Believed() profile.Profile { return p.believed }

// Under returns the same under another system.
func (p *Profiled) Under(s systems.System) *Profiled {
	opened := *p.Opened
	opened.system = s
	out := *p
	out.Opened = &opened
	return &out
}

// WithPlacement returns the same with other instances in place of those that the file lists. The slice is kept.
func (p *Profiled) WithPlacement(list []config.Instance) *Profiled {
	return p.with(func(t *config.World) { t.Placement = list })
}

// Resized returns the same with change[d] workers more of device type d, or less where it is negative, to plan for: it
// cannot serve. What was placed on a worker that is gone is gone, too. moved has, by the WorkerID of before, the one of
// now, or serving.None.
func (p *Profiled) Resized(change []int) (out *Profiled, moved []serving.WorkerID, err error) {
	spec, moved, err := p.Spec().Resized(change)
	if err != nil {
		return nil, nil, err
	}
	return p.with(func(t *config.World) {
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

// with returns a copy with tables of its own, changed.
func (p *Profiled) with(change func(*config.World)) *Profiled {
	tables := *p.tables
	change(&tables)
	opened := *p.Opened
	opened.tables = &tables
	out := *p
	out.Opened = &opened
	return &out
}
