package render

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/resources"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Input is what a cell is made of.
type Input struct {
	Fleet *v1alpha1.Fleet
	Cell  int32
	// Apps that are dealt to the cell, in any order.
	Apps []*v1alpha1.InferenceApp
	// Types are the fleet's machine types, and Most how many machines of each the cell may have, by name. A type that
	// it may have none of is left out.
	Types []*v1alpha1.MachineType
	Most  map[string]int32
	// Shares are the cell's parts of apps that several cells have, by name.
	Shares map[string]float64
	// Budget is the cell's part, in $/h. 0 means that it is not limited.
	Budget float64
	// Profiles are the fleet's.
	Profiles []*v1alpha1.Profile
	// Worker has what holds for the pods of all workers: image and how it is pulled.
	Worker cell.Machines
}

// Output is a cell's configuration.
type Output struct {
	Files    cell.Files
	Machines *cell.Machines
	// Apps are the names of those in it, in their order there. Without any there is no configuration.
	Apps []string
	// Refused says in a sentence why an app or a machine type is left out, by its name.
	RefusedApps, RefusedTypes map[string]string
	// Believed lists what is planned with a latency that nobody has measured.
	Believed []Pair
}

// Pair is a variant on a machine type.
type Pair struct{ App, Stage, Variant, MachineType string }

// supplied is the kind of workers whose machines are had when a plan needs them.
const supplied = "supplied"

// learnOption has the engine correct believed latencies while it serves.
const learnOption = "learn"

// defaultPendingTimeout is that of the resource's definition, for fleets from other sources.
const defaultPendingTimeout = 5 * time.Minute

// Cell makes a cell's configuration. What cannot be used is left out and named in the output; an error is of the fleet
// itself, such as of a system that does not exist.
func Cell(in *Input) (*Output, error) {
	r := &rendering{in: in, out: &Output{RefusedApps: map[string]string{}, RefusedTypes: map[string]string{}}}
	for {
		file := r.file()
		if len(r.apps) == 0 || len(file.Workers) == 0 {
			r.machines()
			return r.out, nil
		}
		text, err := file.YAML()
		if err != nil {
			return nil, err
		}
		again, err := r.refuse(check(text))
		if err != nil {
			return nil, err
		}
		if !again {
			return r.done(string(text))
		}
	}
}

// rendering is the work on one cell.
type rendering struct {
	in    *Input
	out   *Output
	apps  []*v1alpha1.InferenceApp // those of the file, in its order
	types []*v1alpha1.MachineType  // by device type of the file; a part has that of its machine
}

func (r *rendering) done(text string) (*Output, error) {
	profile, err := r.profile()
	if err != nil {
		return nil, err
	}
	r.machines()
	machines, err := r.out.Machines.Encode()
	if err != nil {
		return nil, err
	}
	for _, a := range r.apps {
		r.out.Apps = append(r.out.Apps, a.Name)
	}
	r.out.Files = cell.Files{cell.KeyConfig: text, cell.KeyProfile: profile, cell.KeyMachines: machines}
	return r.out, nil
}

// file makes the configuration of what was not refused.
func (r *rendering) file() *config.File {
	f := &config.File{Version: 1, Profiles: []string{cell.KeyProfile}, System: r.system(), Access: r.access(),
		Tenants: r.tenants()}
	f.Server.TLS = r.tls()
	r.types, r.apps = nil, nil
	for _, t := range sorted(r.in.Types) {
		most := r.in.Most[t.Name]
		if most <= 0 || r.out.RefusedTypes[t.Name] != "" {
			continue
		}
		f.DeviceTypes = append(f.DeviceTypes, deviceType(t, most))
		r.types = append(r.types, t)
		for _, p := range t.Spec.Parts {
			part := config.DeviceType{Part: true}
			resources.Take(&part, p)
			f.DeviceTypes = append(f.DeviceTypes, part)
			r.types = append(r.types, t)
		}
		w := config.Worker{Name: t.Name, DeviceType: t.Name, Count: int(most)}
		if most == 1 {
			w.Name = cell.WorkerName(t.Name, 0) // as a group of several has it
		}
		w.Backend.Kind = supplied
		if l := r.in.Fleet.Spec.Linger; l != nil {
			w.Backend.Linger = config.Duration(l.Duration)
		}
		f.Workers = append(f.Workers, w)
	}
	for _, a := range sorted(r.in.Apps) {
		if r.out.RefusedApps[a.Name] == "" {
			f.Apps = append(f.Apps, r.part(app(a)))
			r.apps = append(r.apps, a)
		}
	}
	return f
}

func (r *rendering) system() config.System {
	spec := &r.in.Fleet.Spec
	s := config.System{Options: map[string]string{learnOption: "true"}}
	resources.Take(&s, spec)
	s.Budget = r.in.Budget
	return s
}

// part has an app expect the cell's share of its demand and of its instances: all parts together have at least as many
// as it is to have, and each has one.
func (r *rendering) part(a config.App) config.App {
	x, ok := r.in.Shares[a.Name]
	if !ok {
		return a
	}
	a.Demand *= x
	a.MinInstances = int(math.Ceil(float64(a.MinInstances)*x - rounding))
	if a.MaxInstances > 0 {
		a.MaxInstances = max(int(math.Floor(float64(a.MaxInstances)*x+rounding)), a.MinInstances, 1)
	}
	return a
}

// rounding is what a share of a whole number may be off by.
const rounding = 1e-9

func deviceType(t *v1alpha1.MachineType, most int32) config.DeviceType {
	var d config.DeviceType
	resources.Take(&d, &t.Spec)
	d.Name, d.Most = t.Name, int(most)
	for _, n := range t.Spec.Accelerators {
		d.Accelerators += int(n)
	}
	return d
}

func app(a *v1alpha1.InferenceApp) config.App {
	out := config.App{Name: a.Name}
	resources.Take(&out, &a.Spec)
	named(out.Variants, a.Name, "")
	for i := range out.Stages {
		st := &out.Stages[i]
		named(st.Variants, a.Name, st.Name)
		for k := range st.Next {
			st.Next[k].To = stageName(a, st.Next[k].To)
		}
		st.Name = stageName(a, st.Name)
	}
	return out
}

// stageName is the name of a stage in a cell's configuration. That of a function is also its name in profiles, where it
// must be no other app's.
func stageName(a *v1alpha1.InferenceApp, name string) string {
	for i := range a.Spec.Stages {
		if st := &a.Spec.Stages[i]; st.Name == name && st.Function != "" {
			return cell.ModelName(a.Name, "", name)
		}
	}
	return name
}

// named gives variants the names of their models on workers: profiles know variants by name, and those of several apps
// may be called the same.
func named(list []config.Variant, app, stage string) {
	for i := range list {
		list[i].Name = cell.ModelName(app, stage, list[i].Name)
	}
}

// machines says what machine supply needs.
func (r *rendering) machines() {
	m := r.in.Worker
	fleet := r.in.Fleet
	m.Fleet, m.Cell, m.MaxSurge = fleet.Name, r.in.Cell, fleet.Spec.MaxSurge
	if fleet.Spec.Image != "" {
		m.Image = fleet.Spec.Image
	}
	m.PendingTimeout = metav1.Duration{Duration: defaultPendingTimeout}
	if fleet.Spec.PendingTimeout != nil {
		m.PendingTimeout = *fleet.Spec.PendingTimeout
	}
	m.Shares = r.in.Shares
	m.Types, m.Models = map[string]v1alpha1.MachineTypeSpec{}, map[string]v1alpha1.Model{}
	for _, t := range r.types {
		spec := t.Spec
		spec.Most = r.in.Most[t.Name]
		m.Types[t.Name] = spec
	}
	for _, a := range r.apps {
		eachVariant(a, func(stage string, v *v1alpha1.Variant) {
			m.Models[cell.ModelName(a.Name, stage, v.Name)] = v.Model
		})
	}
	r.out.Machines = &m
}

// eachVariant calls f for the variants of an app, in their order.
func eachVariant(a *v1alpha1.InferenceApp, f func(stage string, v *v1alpha1.Variant)) {
	for i := range a.Spec.Variants {
		f("", &a.Spec.Variants[i])
	}
	for i := range a.Spec.Stages {
		st := &a.Spec.Stages[i]
		for k := range st.Variants {
			f(st.Name, &st.Variants[k])
		}
	}
}
