package packing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Tolerance is the relative difference below which two rates are equal.
const Tolerance = 1e-9

// State is the instances on a cluster while a plan is made.
type State struct {
	Spec      *serving.Spec
	Cluster   *Cluster
	Functions []Function // by StageID
	o         Options
	// by worker: places in use
	numbers map[serving.WorkerID][]int32
}

// Function is a stage of an app, with the configurations that can serve it and the instances that do.
type Function struct {
	capacity.StageDemand
	stage serving.StageID
	Items float64 // of a query, mean
	// Load is the rate in queries/s to plan for, head-room included; 0 for a function that is not to run.
	Load           float64
	Configurations []Configuration // largest batches first
	// MaxEfficiency is the highest upper bound per resource, which normalises rates per resource.
	MaxEfficiency float64
	late          bool // see Options.Late
	bounds        bounds
	running       []Placed
	// Of packBalanced: the number of instances before it began, the rate that its instances carry, whether nothing more
	// fits, and which configurations may be the cheapest.
	kept        int
	rate        float64
	exhausted   bool
	undominated []int
}

// Read makes the state of a request, with the instances that run. It fails when none of the functions that have a load
// can be served.
func (p *Planner) Read(r plan.Request) (*State, error) {
	x := &State{o: p.Options.filled(), Spec: r.Spec, numbers: make(map[serving.WorkerID][]int32)}
	believed := r.Believed(p.Profile)
	space := newSpace(believed, r.Spec, &x.o)
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.Cluster = newCluster(space, down)
	var unserved []error
	loaded := false
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		f := Function{StageDemand: asked, stage: serving.StageID(s), Items: r.Mix(asked.App).Mean(),
			late: x.o.Late}
		app := &r.Spec.Apps[asked.App]
		f.bounds = bounds{app.MinInstances, app.MaxInstances}
		if int(asked.App) >= len(r.Rates) || r.Rates[asked.App] > 0 || app.MinInstances > 0 {
			f.Load = asked.Rate * x.o.Headroom
		}
		f.Configurations = space.configurationsOf(&f, broken)
		if x.o.Choose != nil {
			f.Configurations = x.o.Choose(f.Configurations, &f)
		}
		for k := range f.Configurations {
			c := &f.Configurations[k]
			f.MaxEfficiency = max(f.MaxEfficiency, c.Up/c.Resources)
		}
		if f.Load > 0 && len(f.Configurations) == 0 {
			unserved = append(unserved, unservable(space, &f, broken))
		}
		loaded = loaded || f.Load > 0 && len(f.Configurations) > 0
		x.Functions = append(x.Functions, f)
	}
	if len(unserved) > 0 && !loaded {
		return nil, errors.Join(unserved...)
	}
	x.adoptRunning(r.Snapshot)
	return x, nil
}

// unservable says why no configuration serves a function.
func unservable(x *space, f *Function, broken []bool) error {
	app, best, what := &x.spec.Apps[f.App], profile.Unknown,
		"nothing was measured on the parts of machines: run 'sluice profile'"
	variants := x.variants(f.stage, broken)
	for _, v := range variants {
		for _, d := range x.devices {
			if t := x.believed.Latency(v, d, 1, 1); t < best {
				best = t
				what = fmt.Sprintf("%q on %q takes %v for one item", x.spec.Variants[v].Name,
					x.spec.DeviceTypes[d].Name, t.Round(10*time.Microsecond))
			}
		}
	}
	if len(variants) == 0 {
		what = "no variant reaches the accuracy floor, or all failed to load"
	}
	return fmt.Errorf(
		"app %q: no part of a machine serves stage %q within %v: %s. Use a faster variant or larger parts, or raise "+
			"the SLO", app.Name, x.spec.Stages[f.stage].Name, f.Budget, what)
}

// adoptRunning takes running instances into the plan, on their servers. It leaves out those that could not be planned
// any more; their functions are served anew.
func (x *State) adoptRunning(snapshot *fleet.Snapshot) {
	if snapshot == nil {
		return
	}
	for _, i := range snapshot.Instances {
		x.numbers[i.Key.Worker] = append(x.numbers[i.Key.Worker], i.Key.Ordinal)
		if i.State == fleet.Draining || i.State == fleet.Stopped {
			continue
		}
		f := &x.Functions[i.Stage]
		at := x.Cluster.serverOf(i.Key.Worker)
		cfg := f.configurationOf(&i)
		if at < 0 || cfg == nil || f.Load == 0 {
			continue
		}
		if on, ok := x.Cluster.Allocate(at, cfg, int(i.Accelerator)); ok {
			f.running = append(f.running, Placed{cfg, at, on, i.Key.Ordinal})
		}
	}
}

// configurationOf returns the configuration of an instance, or nil.
func (f *Function) configurationOf(i *fleet.InstanceSnapshot) *Configuration {
	v, ok := capacity.HostedVariant(*i)
	if !ok {
		return nil
	}
	at := slices.IndexFunc(i.Variants, func(l fleet.Loaded) bool { return l.Variant == v })
	for k := range f.Configurations {
		if c := &f.Configurations[k]; c.Device == i.DeviceType && c.Variant == v && c.Batch == i.Variants[at].Limit {
			return c
		}
	}
	return nil
}

// Placed is an instance on a server.
type Placed struct {
	*Configuration
	Server      int32
	Accelerator int
	place       int32 // as plan.Instance.Place; 0 for a new one
}

// up is the sum of the instances' upper bounds, R_max of INFless; low is R_min.
func (f *Function) up() (sum float64) {
	for _, i := range f.running {
		sum += i.Up
	}
	return sum
}

func (f *Function) low() (sum float64) {
	for _, i := range f.running {
		sum += i.Low
	}
	return sum
}

func (f *Function) resources() (sum float64) { return resources(f.running) }

func resources(list []Placed) (sum float64) {
	for _, i := range list {
		sum += i.Resources
	}
	return sum
}

// served reports whether what runs serves the whole load.
func (f *Function) served() bool { return f.up() >= f.Load*(1-Tolerance) }
