package infless

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

// state is the instances on a cluster while a plan is made.
type state struct {
	o         Options
	spec      *serving.Spec
	cluster   *cluster
	functions []function // by StageID
	// by worker: places in use
	numbers map[serving.WorkerID][]int32
}

// function is a stage of an app, with the configurations that can serve it and the instances that do.
type function struct {
	capacity.StageDemand
	stage serving.StageID
	items float64 // of a query, mean
	// load is the rate in queries/s to plan for, head-room included; 0 for a function that is not to run.
	load           float64
	configurations []Configuration // largest batches first
	// maxEfficiency is the highest upper bound per resource, which normalises the numerator of Eq. 10.
	maxEfficiency float64
	uniform       bool
	bounds        bounds
	running       []placed
	// Of packBalanced: the number of instances before it began, the rate that its instances carry, whether nothing more
	// fits, and which configurations may be the cheapest.
	kept        int
	rate        float64
	exhausted   bool
	undominated []int
}

// read makes the state of a request, with the instances that run. It fails when none of the functions that have a load
// can be served.
func (p *Planner) read(r plan.Request) (*state, error) {
	x := &state{o: p.Options.filled(), spec: r.Spec, numbers: make(map[serving.WorkerID][]int32)}
	believed := r.Believed(p.Profile)
	space := newSpace(believed, r.Spec, &x.o)
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.cluster = newCluster(space, down)
	var unserved []error
	loaded := false
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		f := function{StageDemand: asked, stage: serving.StageID(s), items: r.Mix(asked.App).Mean(),
			uniform: x.o.Uniform}
		app := &r.Spec.Apps[asked.App]
		f.bounds = bounds{app.MinInstances, app.MaxInstances}
		if int(asked.App) >= len(r.Rates) || r.Rates[asked.App] > 0 || app.MinInstances > 0 {
			f.load = asked.Rate * x.o.Headroom
		}
		f.configurations = space.configurationsOf(&f, broken)
		switch {
		case x.o.Uniform:
			f.configurations = cheapest(f.configurations, f.load, f.items, asked.Budget)
		case x.o.Fastest:
			f.configurations = fastest(f.configurations)
		}
		for k := range f.configurations {
			c := &f.configurations[k]
			f.maxEfficiency = max(f.maxEfficiency, c.Up/c.Resources)
		}
		if f.load > 0 && len(f.configurations) == 0 {
			unserved = append(unserved, unservable(space, &f, broken))
		}
		loaded = loaded || f.load > 0 && len(f.configurations) > 0
		x.functions = append(x.functions, f)
	}
	if len(unserved) > 0 && !loaded {
		return nil, errors.Join(unserved...)
	}
	x.adoptRunning(r.Snapshot)
	return x, nil
}

// unservable says why no configuration serves a function.
func unservable(x *space, f *function, broken []bool) error {
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
func (x *state) adoptRunning(snapshot *fleet.Snapshot) {
	if snapshot == nil {
		return
	}
	for _, i := range snapshot.Instances {
		x.numbers[i.Key.Worker] = append(x.numbers[i.Key.Worker], i.Key.Ordinal)
		if i.State == fleet.Draining || i.State == fleet.Stopped {
			continue
		}
		f := &x.functions[i.Stage]
		at := x.cluster.serverOf(i.Key.Worker)
		cfg := f.configurationOf(&i)
		if at < 0 || cfg == nil || f.load == 0 {
			continue
		}
		if on, ok := x.cluster.allocate(at, cfg, int(i.Accelerator)); ok {
			f.running = append(f.running, placed{cfg, at, on, i.Key.Ordinal})
		}
	}
}

// configurationOf returns the configuration of an instance, or nil.
func (f *function) configurationOf(i *fleet.InstanceSnapshot) *Configuration {
	v, ok := capacity.HostedVariant(*i)
	if !ok {
		return nil
	}
	at := slices.IndexFunc(i.Variants, func(l fleet.Loaded) bool { return l.Variant == v })
	for k := range f.configurations {
		if c := &f.configurations[k]; c.Device == i.DeviceType && c.Variant == v && c.Batch == i.Variants[at].Limit {
			return c
		}
	}
	return nil
}

// up is the sum of the instances' upper bounds, R_max of the paper; low is R_min.
func (f *function) up() (sum float64) {
	for _, i := range f.running {
		sum += i.Up
	}
	return sum
}

func (f *function) low() (sum float64) {
	for _, i := range f.running {
		sum += i.Low
	}
	return sum
}

func (f *function) resources() (sum float64) { return resources(f.running) }

func resources(list []placed) (sum float64) {
	for _, i := range list {
		sum += i.Resources
	}
	return sum
}

// served reports whether what runs serves the whole load.
func (f *function) served() bool { return f.up() >= f.load*(1-tolerance) }
