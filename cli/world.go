package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/host/functions"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/runtime/builtin"
	"github.com/sluice-serving/sluice/runtime/fake"
	"github.com/sluice-serving/sluice/runtime/native"
	"github.com/sluice-serving/sluice/runtime/onnx"
	"github.com/sluice-serving/sluice/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
	"github.com/sluice-serving/sluice/tensor"
	"github.com/sluice-serving/sluice/tensor/ops"
)

// believed is the latency statistic that plans and rules believe in. The 95th percentile keeps head-room for noise
// (RAMSIS §6 plans with it, too); the median, which Proteus takes, makes one batch in two late when there is no slack.
const believed = "p95"

// world is a sluice.yaml with everything that commands make of it.
type world struct {
	file *config.File
	*config.World
	system       systems.System
	measurements serving.Measurements
	profile      profile.Profile
	functions    *functions.Manager // nil without a store
	starts       bool               // the command runs the system: one that learns may begin without a profile
	unmeasured   bool               // nothing is known of latency until it is learned
	placement    []static.Instance  // as written down
	solver       milp.Solver        // made when a planner first needs one
	planner      plan.Planner
	plan         *plan.Plan // the first one
	unplanned    bool       // believing makes no plan: the command asks for its own
	env          *Env
	making       *making
}

// names are what a sluice.yaml may mention.
func names() config.Names {
	return config.Names{Systems: systems.Names(), Routers: systems.Routers(), Batchers: systems.Batchers(),
		Planners: systems.Planners(), Scalers: systems.Scalers(),
		Settings: append([]string{
			"batch", "timeout", "planner", "scaler", "replan", "slack", "budget",
		}, systems.Settings("options.")...)}
}

// openWorld reads and checks a sluice.yaml.
func openWorld(e *Env, path string) (*world, error) {
	f, err := config.Load(path)
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	if err := f.CheckNames(names()); err != nil {
		return nil, &status{ExitConfig, err}
	}
	r, err := f.Resolve()
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	w := &world{file: f, World: r, env: e, making: newMaking(f.Path(policiesFolder))}
	if len(r.Apps) == 0 {
		if w.system, err = composition(f.System); err != nil {
			return nil, &status{ExitConfig, fmt.Errorf("%s: system: %w", path, err)}
		}
	}
	for i := range r.Apps {
		s, err := composition(r.Apps[i].System)
		if err != nil {
			return nil, &status{ExitConfig, fmt.Errorf("%s: app %q: %w", path, r.Spec.Apps[i].Name, err)}
		}
		if i > 0 && !reflect.DeepEqual(s, w.system) {
			return nil, exit(ExitConfig, "%s: apps[%d].system differs from that of app %q: one server runs one "+
				"system; start a server for each", path, i, r.Spec.Apps[0].Name)
		}
		w.system = s
	}
	return w, nil
}

// composition turns the file's words into a system.
func composition(c config.System) (systems.System, error) {
	s := systems.System{Name: c.Router + "+" + c.Batcher, Router: c.Router, Batcher: c.Batcher}
	if c.Router == "" && c.Batcher == "" {
		var err error
		if s, err = systems.Get(c.Name); err != nil {
			return s, err
		}
	}
	if c.Planner != "" {
		s.Planner = c.Planner
	}
	if c.Scaler != "" {
		s.Scaler = c.Scaler
	}
	o := &s.Options
	if c.Batch > 0 {
		o.BatchSize = c.Batch
	}
	if c.Timeout > 0 {
		o.Timeout = time.Duration(c.Timeout)
	}
	if c.Replan > 0 {
		o.Replan = time.Duration(c.Replan)
	}
	o.Renting.Budget = c.Budget
	return s, o.Set(c.Options)
}

// believe reads the profiles and plans with them. Without a profile for something in the file it fails and says what to
// run.
func (w *world) believe(paths []string) error {
	if len(paths) == 0 {
		paths = w.Profiles
	}
	var files []*profiler.File
	for _, p := range paths {
		f, err := profiler.ReadFile(p)
		if err != nil {
			return &status{ExitConfig, err}
		}
		kept, _ := f.Only(w.Spec)
		files = append(files, kept)
	}
	switch len(files) {
	case 0:
		return w.assume()
	case 1:
		return w.learn(files[0])
	}
	merged, err := profiler.Merge(files...)
	if err != nil {
		return &status{ExitConfig, err}
	}
	return w.learn(merged)
}

// assume takes the latencies of fake backends from their settings: they need no profile.
func (w *world) assume() error {
	var m serving.Measurements
	add := func(b config.Backend, d serving.DeviceTypeID) {
		for v := range w.Spec.Variants {
			for items := 1; items <= w.Spec.Variants[v].MaxBatch; items *= 2 {
				l := max(time.Duration(b.Latency)+time.Duration(items)*time.Duration(b.LatencyPerItem),
					time.Microsecond)
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: serving.VariantID(v), DeviceType: d, Items: items, Concurrency: 1, Mean: l, P50: l, P90: l,
					P95: l, P99: l,
				})
			}
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: serving.VariantID(v), DeviceType: d, Load: time.Duration(b.LoadTime),
			})
		}
	}
	for at, b := range w.Backends {
		if b.Kind != "fake" {
			return exit(ExitConfig,
				"%s names no profile: run 'sluice profile -f %s -o profile.json' and list it under profiles, or pass "+
					"--profile", w.file.Name(), w.file.Name())
		}
		add(b, w.Spec.Workers[at].DeviceType)
	}
	for d := range w.Spec.DeviceTypes {
		if id := serving.DeviceTypeID(d); w.Spec.DeviceTypes[d].Part {
			if hosts := w.Spec.Hosts(id); len(hosts) > 0 {
				add(w.Backends[hosts[0]], id)
			}
		}
	}
	w.unmeasured = w.starts && w.system.Options.Learn // how fakes behave is for the one who simulates them to know
	return w.adopt(m)
}

func (w *world) learn(f *profiler.File) error {
	m, err := f.Measurements(w.Spec)
	if err != nil {
		return &status{ExitConfig, err}
	}
	return w.adopt(m)
}

// adopt turns measurements into belief and a plan.
func (w *world) adopt(m serving.Measurements) error {
	statistic, err := profile.ParseStatistic(believed)
	if err != nil {
		return err
	}
	w.measurements = m
	if w.unmeasured {
		w.profile = profile.NewLearned(w.Spec, nil)
	} else if w.profile, err = profile.NewTable(w.Spec, m, statistic); err != nil {
		return &status{ExitConfig, err}
	}
	w.placement = nil
	for _, i := range w.Placement {
		w.placement = append(w.placement, static.Instance(i))
	}
	if w.unplanned {
		return nil
	}
	return w.replan()
}

// replan asks the planner again.
func (w *world) replan() (err error) {
	defer w.making.wait(w.env, newProgress(w.env))()
	if w.planner, err = w.newPlanner(w.system); err != nil {
		return err
	}
	if w.plan, err = w.planner.Plan(w.env.Context, w.asks()); err != nil {
		if w.env.Context.Err() != nil {
			return err
		}
		return &status{ExitConfig, err}
	}
	return nil
}

// newPlanner builds a system's planner over what this world believes.
func (w *world) newPlanner(s systems.System) (plan.Planner, error) {
	if w.file.Store == "" {
		return w.plannerOf(s, w.profile)
	}
	return systems.NewOpen(w.profile, func(p profile.Profile) (plan.Planner, error) { return w.plannerOf(s, p) })
}

// plannerOf builds a system's planner over what is believed. With a store it places what the file says nothing of.
func (w *world) plannerOf(s systems.System, believed profile.Profile) (plan.Planner, error) {
	known := systems.World{
		Profile: believed, Placement: w.placement, Spread: w.file.Store != "", Policies: w.making.keeps(),
		Made: w.making.made,
	}
	p, err := s.NewPlanner(known)
	if errors.Is(err, systems.ErrNoSolver) {
		if w.solver == nil {
			if w.solver, err = newSolver(); err != nil {
				return nil, err
			}
		}
		known.Solver = w.solver
		p, err = s.NewPlanner(known)
	}
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	return p, nil
}

// asks is the question that the first plan answers.
func (w *world) asks() plan.Request {
	r := plan.Request{Spec: w.Spec, Rates: w.demand()}
	for len(r.Rates) < len(w.Spec.Apps) {
		r.Rates = append(r.Rates, 0) // functions that nobody has called yet
	}
	if w.unmeasured {
		r.Beliefs = profile.NewLearned(w.Spec, nil).Frozen()
	}
	return r
}

// demand is what the first plan is made for, by AppID.
func (w *world) demand() []float64 {
	out := make([]float64, len(w.Apps))
	for a := range w.Apps {
		out[a] = w.Apps[a].Demand
	}
	return out
}

// sizes are those of queries to expect, by app.
func (w *world) sizes() map[string]workload.ItemsSpec {
	out := make(map[string]workload.ItemsSpec)
	for a := range w.Apps {
		out[w.Spec.Apps[a].Name] = w.Apps[a].Items
	}
	return out
}

func (w *world) engine() (*engine.Engine, error) {
	if w.unmeasured {
		return w.system.Engine(w.Spec, nil, w.planner.Provides())
	}
	return w.system.Engine(w.Spec, w.profile, w.planner.Provides())
}

// appInfos is what reports say of the apps.
func (w *world) appInfos() []report.AppInfo {
	out := make([]report.AppInfo, len(w.Spec.Apps))
	for a := range out {
		out[a] = report.AppInfo{
			Name: w.Spec.Apps[a].Name, SLO: w.Spec.Apps[a].SLO, BestAccuracy: bestAccuracy(w.Spec, serving.AppID(a)),
		}
	}
	return out
}

// bestAccuracy is what an app reaches when every stage uses its most accurate variant.
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

// backends are what runs the models and functions of every worker.
type backends struct {
	world *world
	list  []dataplane.Backend // of models, by WorkerID
	whole []dataplane.Backend // by WorkerID: with functions, where these are run
	local *onnx.Backend       // nil when no worker runs models in this process
}

func (b *backends) of(id serving.WorkerID) dataplane.Backend { return b.whole[id] }

// backends makes what the file asks for. Nothing is connected or loaded yet.
func (w *world) backends() (*backends, error) {
	out := &backends{world: w, list: make([]dataplane.Backend, len(w.Backends))}
	functions := w.builtins()
	for at, b := range w.Backends {
		var err error
		switch {
		case b.Kind == "fake":
			out.list[at], err = w.fake(b)
		case b.Kind == "openinference":
			out.list[at], err = w.remote(b)
		case len(functions) == len(w.Variants) && len(functions) > 0 && w.file.Store == "":
			// No model will ever run here, so that no runtime is needed.
		default:
			if out.local == nil {
				out.local, err = w.onnx()
			}
			out.list[at] = out.local
		}
		if err != nil {
			return nil, err
		}
		whole := out.list[at]
		if len(functions) > 0 && b.Kind != "fake" { // a fake worker has nothing for functions to work on
			whole = builtin.New(functions, whole)
		}
		out.whole = append(out.whole, whole)
	}
	return out, nil
}

// builtins are the variants that are functions.
func (w *world) builtins() map[serving.VariantID]*ops.Function {
	out := make(map[serving.VariantID]*ops.Function)
	for v := range w.Variants {
		if f := w.Variants[v].Function; f != nil {
			out[serving.VariantID(v)] = f
		}
	}
	return out
}

// askRemote bounds the question to a remote server what a model takes.
const askRemote = 10 * time.Second

// describe tells what a variant takes and gives: from the file, from its model, or from the server that has it.
func (b *backends) describe(v serving.VariantID) (inputs, outputs []tensor.Spec, batched bool, err error) {
	w := b.world
	app, at := w.Variants[v].App, w.Spec.Variants[v].Stage
	several := len(w.Spec.Apps[app].Stages) > 1
	if s := w.Stages[at]; several && s.Inputs != nil {
		return s.Inputs, s.Outputs, w.Variants[v].Batched, nil
	}
	if info := w.Apps[app]; info.Inputs != nil &&
		(!several || at == w.Spec.Source(app) && len(w.Stages[at].Takes) == 0) {
		return info.Inputs, info.Outputs, info.Batched, nil
	}
	ctx, done := context.WithTimeout(context.Background(), askRemote)
	defer done()
	return b.ask(ctx, v)
}

// ask tells what the model of a variant takes and gives, from its file or from the server that has it.
func (b *backends) ask(ctx context.Context, v serving.VariantID) (inputs, outputs []tensor.Spec, batched bool,
	err error) {
	w := b.world
	if b.local != nil && w.Variants[v].Path != "" {
		i, err := b.local.Interface(v)
		return i.Inputs, i.Outputs, i.Batched, err
	}
	for _, x := range b.list {
		remote, ok := x.(*openinference.Backend)
		if !ok {
			continue
		}
		inputs, outputs, err = remote.Interface(ctx, v)
		if err == nil {
			batched = len(inputs) > 0
			for _, s := range inputs {
				batched = batched && len(s.Shape) > 0 && s.Shape[0] < 0
			}
			return inputs, outputs, batched, nil
		}
	}
	if err == nil {
		err = errors.New("give them under apps[].inputs")
	}
	return nil, nil, false, fmt.Errorf("the inputs of variant %q are not known: %w", w.Spec.Variants[v].Name, err)
}

func (w *world) onnx() (*onnx.Backend, error) {
	models := make(map[serving.VariantID]onnx.Model)
	for v, b := range w.Variants {
		if b.Path != "" {
			models[serving.VariantID(v)] = onnx.Model{Path: b.Path, NoBatch: !b.Batched}
		}
	}
	b, err := onnx.New(onnx.Config{Models: models})
	if errors.Is(err, native.ErrMissing) {
		return nil, &status{ExitMissing, err}
	}
	return b, err
}

func (w *world) fake(b config.Backend) (dataplane.Backend, error) {
	finds := make(map[serving.VariantID][]fake.Found)
	for _, st := range w.Spec.Stages {
		for _, e := range st.Next {
			for _, v := range st.Variants {
				if e.Rows != "" {
					finds[v] = append(finds[v], fake.Found{Name: e.Rows, PerItem: e.FanOut})
				}
			}
		}
	}
	return fake.New(fake.Config{
		Latency: func(_ serving.VariantID, items int) time.Duration {
			return time.Duration(b.Latency) + time.Duration(items)*time.Duration(b.LatencyPerItem)
		},
		Load:      func(serving.VariantID) time.Duration { return time.Duration(b.LoadTime) },
		ErrorRate: b.ErrorRate, Seed: uint64(b.Seed), Finds: finds,
	})
}

// remote connects to a server that speaks the Open Inference Protocol.
func (w *world) remote(b config.Backend) (dataplane.Backend, error) {
	models := make(map[serving.VariantID]openinference.Model)
	for v, x := range w.Variants {
		models[serving.VariantID(v)] = openinference.Model{Name: x.Model, Version: x.Version}
	}
	return openinference.New(openinference.Config{
		Address: b.Address, TLS: b.TLS, CA: w.file.Path(b.CA), LoadModels: b.LoadModels, Models: models,
	})
}

// measure profiles every variant on every device type that has a worker and on every part that can be measured, and
// writes the profile to path when it is not empty. What has been measured already (in path's .partial file) is not
// measured again.
func (w *world) measure(e *Env, path string, tune func(*profiler.Config)) (*profiler.File, error) {
	runtimes, err := w.backends()
	if err != nil {
		return nil, err
	}
	tensors := func(v serving.VariantID) ([]tensor.Spec, bool, error) {
		in, _, batched, err := runtimes.describe(v)
		return in, batched, err
	}
	bar := newProgress(e)
	defer bar.done()
	var files []*profiler.File
	sites, left := w.sites()
	for _, x := range left {
		fmt.Fprintln(e.Stderr, x)
	}
	for _, s := range sites {
		d := s.device
		c := profiler.Config{Spec: w.Spec, Backend: runtimes.of(s.worker), DeviceType: d, Worker: s.worker,
			Tensors:  tensors,
			Variants: s.variants, Slots: s.slots, Cores: s.cores, ModelFile: func(v serving.VariantID) string {
				return w.Variants[v].Path
			}}
		if w.Backends[s.worker].Kind != "fake" {
			c.RandomBatch, c.Identity = w.functionParts, w.functionIdentity
		}
		version := ""
		if runtimes.local != nil {
			version = onnx.Version()
		}
		c.Host = profiler.ThisHost(version)
		if path != "" {
			c.Partial = fmt.Sprintf("%s.%s.partial", path, strings.ReplaceAll(w.Spec.DeviceTypes[d].Name,
				string(filepath.Separator), "_"))
		}
		if tune != nil {
			tune(&c)
		}
		if w.Spec.DeviceTypes[d].Part {
			c.Slots = 1 // a part is one instance's, which runs a batch at a time
		}
		f, err := profiler.Run(e.Context, c, func(done, total int, what string) {
			bar.show(float64(done)/float64(max(total, 1)), "measuring "+what)
		})
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		if c.Partial != "" {
			defer os.Remove(c.Partial)
		}
	}
	f := files[0]
	if len(files) > 1 {
		if f, err = profiler.Merge(files...); err != nil {
			return nil, err
		}
	}
	if path != "" {
		err = f.WriteFile(path)
	}
	return f, err
}

// functionParts are inputs that a function can be measured with, an item each; nil for models.
func (w *world) functionParts(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Part, error) {
	f := w.Variants[v].Function
	if f == nil {
		return nil, nil
	}
	parts := make([]dataplane.Part, items)
	for k := range parts {
		inputs, err := f.Sample(rng, w.Stages[w.Spec.Variants[v].Stage].Inputs, 1)
		if err != nil {
			return nil, err
		}
		parts[k] = dataplane.Part{Query: serving.QueryID(k + 1), Items: 1, Inputs: inputs}
	}
	return parts, nil
}

// functionIdentity is what the latency of a function depends on; empty for models, whose files say it.
func (w *world) functionIdentity(v serving.VariantID) string {
	f := w.Variants[v].Function
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s %v %v", f.Name(), w.Variants[v].With, w.Stages[w.Spec.Variants[v].Stage].Inputs)
}

// placed lists the variants that any worker of the same device type is to load.
func (w *world) placed(id serving.WorkerID) []serving.VariantID {
	has := make(map[serving.VariantID]bool)
	for _, i := range w.Placement {
		if w.Spec.Workers[i.Worker].DeviceType == w.Spec.Workers[id].DeviceType {
			for _, v := range i.Variants {
				has[v] = true
			}
		}
	}
	var out []serving.VariantID
	for v := range w.Spec.Variants {
		if has[serving.VariantID(v)] {
			out = append(out, serving.VariantID(v))
		}
	}
	return out
}

// configSystem reads NAME or ROUTER+BATCHER, the short form of the command line.
func configSystem(name string) config.System {
	if r, b, ok := strings.Cut(name, "+"); ok {
		return config.System{Router: r, Batcher: b}
	}
	return config.System{Name: name}
}
