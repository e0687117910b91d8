package host

import (
	"fmt"
	"reflect"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// Opened is a configuration that was read and checked. Every name in it is known, its models are found, and its system
// is composed. Nothing has been measured, planned or started.
type Opened struct {
	file     *config.File
	whole    *config.File // with the apps that are not started
	tables   *config.Resolved
	system   systems.System
	options  Options
	policies *policyStore
	shown    *once
	broken   []LeftOutApp     // apps of the file that are left out
	single   []string         // variants that were found not to batch
	judged   []JudgedAccuracy // accuracies that a profile has
	lenient  bool             // variants may lack an accuracy: only their speed counts
	named    string           // system that WithSystem was asked for; empty for that of the file
}

// Open reads the sluice.yaml at path. Relative paths in the file start from its folder. An error is of kind
// fault.Config; it lists every problem with its line and field.
func Open(path string, options Options) (*Opened, error) {
	f, err := config.Load(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return OpenFile(f, options)
}

// OpenFile is Open for a file that was read already, as by config.Parse. It keeps the file.
func OpenFile(f *config.File, options Options) (*Opened, error) {
	if err := f.CheckNames(names()); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if err := f.SetModels(options.Models); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	whole := f
	f = f.Started()
	tables, err := f.Resolve()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	o := &Opened{
		file: f, whole: whole, tables: tables, options: options.withDefaults(), shown: &once{},
	}
	o.policies = newPolicyStore(f.Path(PoliciesFolder), o.options)
	if o.system, err = systemOf(f, tables); err != nil {
		return nil, err
	}
	return o, nil
}

// systemOf composes the system of a file. It is that of the apps, which must agree, or the file's own if it has no
// apps.
func systemOf(f *config.File, tables *config.Resolved) (out systems.System, err error) {
	if len(tables.Apps) == 0 {
		if out, err = compose(f.System); err != nil {
			return out, fault.Wrap(fault.Config, f.Problem("system", "%v", err))
		}
		return out, nil
	}
	for i := range tables.Apps {
		s, err := compose(tables.Apps[i].System)
		path := fmt.Sprintf("apps[%d].system", i)
		if err != nil {
			if f.Apps[i].System == nil {
				path = "system" // of all apps that have none of their own
			}
			return out, fault.Wrap(fault.Config, f.Problem(path, "%v", err))
		}
		if i > 0 && !reflect.DeepEqual(s, out) {
			return out, fault.Wrap(fault.Config, f.Problem(path, "differs from that of app %q: one server runs one "+
				"system, and what is to hold for the queue of one app is written as its queue",
				tables.Spec.Apps[0].Name))
		}
		out = s
	}
	return out, nil
}

// WithSystem returns a copy with another system: NAME, or ROUTER+BATCHER. The system section of the file no longer
// counts. An error is of kind fault.Usage.
func (o *Opened) WithSystem(name string) (*Opened, error) {
	s, err := ParseSystem(name)
	if err != nil {
		return nil, err
	}
	out := *o
	out.system, out.named = s, name
	return &out, nil
}

// WithFile returns a copy with another file and what it says, which is resolved already.
func (o *Opened) WithFile(f *config.File, tables *config.Resolved) *Opened {
	out := *o
	out.file, out.tables = f, tables
	return &out
}

// Under returns a copy with another system.
func (o *Opened) Under(s systems.System) *Opened {
	out := *o
	out.system = s
	return &out
}

// Name is the path that the file was read from.
func (o *Opened) Name() string { return o.file.Name() }

// File is the file with defaults filled in. It is shared: do not change it.
func (o *Opened) File() *config.File { return o.file }

// Whole is the file with the apps that are not started.
func (o *Opened) Whole() *config.File { return o.whole }

// Named is the system that WithSystem was asked for; "" for that of the file.
func (o *Opened) Named() string { return o.named }

// Tables are the file with its names resolved. They are shared: do not change them.
func (o *Opened) Tables() *config.Resolved { return o.tables }

// Spec has the tables that planners and engines work on. It is shared: do not change it.
func (o *Opened) Spec() *serving.Spec { return o.tables.Spec }

// System is the composition of planner, router, batcher and scaler that the configuration runs.
func (o *Opened) System() systems.System { return o.system }

// Options are those of Open. None of their functions is nil.
func (o *Opened) Options() Options { return o.options }

// AppID returns the app of a name. The error has no kind, since that depends on the source of the name.
func (o *Opened) AppID(name string) (serving.AppID, error) {
	if a, ok := o.tables.App(name); ok {
		return a, nil
	}
	return serving.None, fmt.Errorf("app %q is not in %s", name, o.Name())
}

// AppNames are the names of the apps, by AppID.
func (o *Opened) AppNames() []string {
	out := make([]string, len(o.Spec().Apps))
	for a := range out {
		out[a] = o.Spec().Apps[a].Name
	}
	return out
}

// VariantNames are the names of the variants, by VariantID.
func (o *Opened) VariantNames() []string {
	out := make([]string, len(o.Spec().Variants))
	for v := range out {
		out[v] = o.Spec().Variants[v].Name
	}
	return out
}

// Demand is the demand that the first plan is made for, in queries/s by AppID. The slice is the caller's.
func (o *Opened) Demand() []float64 {
	out := make([]float64, len(o.tables.Apps))
	for a := range out {
		out[a] = o.tables.Apps[a].Demand
	}
	return out
}

// AppInfo describes the apps to reports, by AppID. The slice is the caller's.
func (o *Opened) AppInfo() []report.AppInfo {
	spec := o.Spec()
	out := make([]report.AppInfo, len(spec.Apps))
	for a := range out {
		out[a] = report.AppInfo{
			Name: spec.Apps[a].Name, SLO: spec.Apps[a].SLO, BestAccuracy: spec.BestAccuracy(serving.AppID(a)),
			Weight: spec.Apps[a].Weight, Target: spec.Apps[a].AccuracyTarget,
		}
	}
	return out
}

// Fleet is what the configuration says of machines.
func (o *Opened) Fleet() *machines.Fleet {
	return &machines.Fleet{File: o.file, Tables: o.tables, Written: systems.Written(o.system.Planner),
		Notice: o.options.Notice, Where: o.options.Where, Supply: o.options.Machines, Net: o.options.Net}
}
