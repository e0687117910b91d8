package host

import (
	"fmt"
	"reflect"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/systems"
)

// Opened is a configuration that was read and checked: every name in it is known, its models are found, and its system
// is put together. Nothing has been measured, planned or started.
type Opened struct {
	file     *config.File
	tables   *config.World
	system   systems.System
	options  Options
	solver   *sharedSolver
	policies *policyStore
}

// Open reads the sluice.yaml at path. Relative paths in the file start from its folder. An error is of kind
// fault.Config and names the line and the field of everything that is wrong.
func Open(path string, options Options) (*Opened, error) {
	f, err := config.Load(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if err := f.CheckNames(names()); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	tables, err := f.Resolve()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	o := &Opened{file: f, tables: tables, options: options.complete(), solver: &sharedSolver{}}
	o.policies = newPolicyStore(f.Path(PoliciesFolder), o.options)
	if o.system, err = theSystem(f, tables); err != nil {
		return nil, err
	}
	return o, nil
}

// theSystem is the one system of a file. Without apps it is the file's, otherwise that of all apps.
func theSystem(f *config.File, tables *config.World) (out systems.System, err error) {
	if len(tables.Apps) == 0 {
		if out, err = compose(f.System); err != nil {
			return out, fault.Errorf(fault.Config, "%s: system: %w", f.Name(), err)
		}
		return out, nil
	}
	for i := range tables.Apps {
		s, err := compose(tables.Apps[i].System)
		if err != nil {
			return out, fault.Errorf(fault.Config, "%s: app %q: %w", f.Name(), tables.Spec.Apps[i].Name, err)
		}
		if i > 0 && !reflect.DeepEqual(s, out) {
			return out, fault.Errorf(fault.Config, "%s: apps[%d].system differs from that of app %q: one server runs "+
				"one system; start a server for each", f.Name(), i, tables.Spec.Apps[0].Name)
		}
		out = s
	}
	return out, nil
}

// WithSystem returns the configuration under another system: NAME, or ROUTER+BATCHER. What the file says of its own
// system no longer counts. An error is of kind fault.Usage.
func (o *Opened) WithSystem(name string) (*Opened, error) {
	s, err := ParseSystem(name)
	if err != nil {
		return nil, err
	}
	out := *o
	out.system = s
	return &out, nil
}

// Name is the path that the file was read from.
func (o *Opened) Name() string { return o.file.Name() }

// File is the file as it was written, with defaults where it says nothing. It is shared and must not be changed.
func (o *Opened) File() *config.File { return o.file }

// Tables are what the file's names stand for. They are shared and must not be changed.
func (o *Opened) Tables() *config.World { return o.tables }

// Spec has the tables that deciding code works on. It is shared and must not be changed.
func (o *Opened) Spec() *serving.Spec { return o.tables.Spec }

// System is what will decide.
func (o *Opened) System() systems.System { return o.system }

// Options are those that the configuration was opened with, with something to call in every place.
func (o *Opened) Options() Options { return o.options }

// AppID finds an app by its name.
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

// Demand is what the first plan is made for, in queries/s by AppID.
func (o *Opened) Demand() []float64 {
	out := make([]float64, len(o.tables.Apps))
	for a := range out {
		out[a] = o.tables.Apps[a].Demand
	}
	return out
}

// Reported is what reports say of the apps, by AppID.
func (o *Opened) Reported() []report.AppInfo {
	spec := o.Spec()
	out := make([]report.AppInfo, len(spec.Apps))
	for a := range out {
		out[a] = report.AppInfo{
			Name: spec.Apps[a].Name, SLO: spec.Apps[a].SLO, BestAccuracy: bestAccuracy(spec, serving.AppID(a)),
		}
	}
	return out
}

// bestAccuracy is that of an app whose every stage uses its most accurate variant.
func bestAccuracy(spec *serving.Spec, a serving.AppID) float64 {
	best := 1.0
	for _, s := range spec.Apps[a].Stages {
		stage := 0.0
		for _, v := range spec.Stages[s].Variants {
			stage = max(stage, spec.Variants[v].Accuracy)
		}
		best *= stage
	}
	return best
}
