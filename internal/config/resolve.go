package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// Spec returns Resolved.Spec of Resolve.
func (f *File) Spec() (*serving.Spec, error) {
	w, err := f.Resolve()
	if err != nil {
		return nil, err
	}
	return w.Spec, nil
}

// Resolve looks up the models and turns the file into a Resolved. The error is a Problems when models and file do not
// match.
func (f *File) Resolve() (*Resolved, error) { return f.ResolveFrom(nil) }

// ResolveFrom is Resolve with models of an open repository in place of the file's; nil opens the file's.
func (f *File) ResolveFrom(repo *repository.Repository) (*Resolved, error) {
	r := &resolver{
		c: &checker{f: f, bad: map[string]bool{}}, f: f,
		w:      &Resolved{Spec: &serving.Spec{}},
		models: map[string]*repository.Model{}, warned: map[string]bool{},
	}
	if r.readOptions(); len(r.c.found) > 0 {
		return nil, r.c.err()
	}
	for _, w := range f.Workers {
		r.local = r.local || w.Backend.Kind == "onnx"
	}
	if repo != nil {
		r.repo = repo
	} else if f.Models.Repository != "" {
		repo, err := repository.Open(f.Path(f.Models.Repository))
		if err != nil {
			r.c.addf("models.repository", "%v", err)
			return nil, r.c.err()
		}
		defer func() { _ = repo.Close() }()
		r.repo = repo
	}
	if r.repo != nil {
		for name := range f.whole {
			r.repo.Whole(name)
		}
	}
	r.machines()
	for _, t := range f.Tenants {
		r.w.Spec.Tenants = append(r.w.Spec.Tenants, serving.Tenant{Name: t.Name, Weight: t.Weight})
	}
	for i := range f.Apps {
		r.app(i)
	}
	for _, p := range f.Profiles {
		r.w.Profiles = append(r.w.Profiles, f.Path(p))
	}
	r.sharedNames()
	if len(r.c.found) == 0 {
		r.placement()
	}
	if err := r.c.err(); err != nil {
		return nil, err
	}
	if err := r.w.Spec.Validate(); err != nil {
		return nil, f.Problem("", "%v", err)
	}
	return r.w, nil
}

type resolver struct {
	c      *checker
	f      *File
	w      *Resolved
	repo   *repository.Repository
	models map[string]*repository.Model // read so far; nil for missing ones
	warned map[string]bool
	with   map[string]map[string]string // by stage's path: options of functions that were read from files
	local  bool                         // some worker runs models in this process; they must then be in the repository
	entry  []int                        // by WorkerID: index into File.Workers
}

func (r *resolver) machines() {
	s := r.w.Spec
	for _, d := range r.f.DeviceTypes {
		s.DeviceTypes = append(s.DeviceTypes, serving.DeviceType{
			Name: d.Name, PricePerHour: d.PricePerHour, Cores: d.Cores, MemoryBytes: int64(d.Memory),
			MaxMachines:  d.Most,
			Tenure:       serving.ParseTenure(d.Tenure),
			Accelerators: d.Accelerators, Part: d.Part, Percent: d.Percent,
		})
	}
	names, entry := r.f.expand()
	r.entry = entry
	nth := map[int]int{}
	for i, e := range entry {
		w := &r.f.Workers[e]
		d := slices.IndexFunc(s.DeviceTypes, func(d serving.DeviceType) bool { return d.Name == w.DeviceType })
		s.Workers = append(s.Workers, serving.Worker{Name: names[i], DeviceType: serving.DeviceTypeID(d)})
		b := w.Backend
		if len(b.Addresses) > 0 {
			b.Address = b.Addresses[nth[e]]
		}
		b.CA = r.f.Path(b.CA)
		var has []string
		if n := len(w.Accelerators) / max(w.Count, 1); n > 0 {
			has = w.Accelerators[nth[e]*n : (nth[e]+1)*n]
		}
		r.w.Accelerators = append(r.w.Accelerators, has)
		nth[e]++
		r.w.Backends = append(r.w.Backends, b)
	}
	for i := range s.DeviceTypes {
		if d := &s.DeviceTypes[i]; d.Part && len(s.Hosts(serving.DeviceTypeID(i))) == 0 {
			r.w.warnf("part %q fits on no worker", d.Name)
		}
	}
}

func (r *resolver) app(i int) {
	f, s, a, path := r.f, r.w.Spec, &r.f.Apps[i], at("apps", i)
	app := serving.App{
		Name: a.Name, VersionOf: a.VersionOf, SLO: serving.SLO{Latency: time.Duration(a.SLO.Latency),
			Percentile: a.SLO.Percentile, Proposed: a.SLO.Proposed},
		Weight: a.Weight, Floor: a.AccuracyFloor, AccuracyTarget: a.AccuracyTarget, QueueLimit: a.QueueLimit,
		ColdWait: time.Duration(a.ColdWait), MinInstances: a.MinInstances, MaxInstances: a.MaxInstances,
		Slack: time.Duration(r.f.SystemOf(i).Slack),
	}
	app.Mix, _ = a.Items.mix() // checked with the file
	if a.Late == "serve-late" {
		app.Late, app.GiveUp = serving.ServeLate, time.Duration(a.GiveUp)
	}
	views := f.stages(a, path)
	sorted := []int{0}
	if len(a.Stages) > 0 {
		sorted, _ = order(a.Stages)
	}
	ids := map[string]serving.StageID{}
	for n, at := range sorted {
		ids[views[at].Name] = serving.StageID(len(s.Stages) + n)
	}
	base := len(s.Stages)
	for _, n := range sorted {
		v := &views[n]
		st := serving.Stage{Name: v.Name, App: serving.AppID(i), Stateful: v.Stateful, Queue: v.Queue.rules()}
		for j, e := range v.Next {
			st.Next = append(st.Next, serving.Edge{To: ids[e.To], FanOut: e.FanOut, Rows: e.Rows})
			if !(&pipeline.Edge{FanOut: e.FanOut, Rows: e.Rows}).Servable() {
				r.w.warnf("%s: fan_out is %v without rows: this can be simulated, but not served",
					at(v.path+".next", j), e.FanOut)
			}
		}
		id := serving.StageID(len(s.Stages))
		for j := range v.Variants {
			if v.Function != "" {
				st.Variants = append(st.Variants, r.function(v, serving.AppID(i), id))
			} else {
				path := at(v.path+".variants", j)
				st.Variants = append(st.Variants, r.variant(&v.Variants[j], path, serving.AppID(i), id))
				if v.Queue == nil && !a.Whole {
					r.warnOfQueue(st.Variants[j])
				}
				if a.Whole {
					r.whole(st.Variants[j])
				}
				r.w.Variants[len(r.w.Variants)-1].Unrated = len(v.Variants) > 1 && v.Variants[j].Accuracy == 0 &&
					!r.c.f.has(path+".accuracy")
			}
		}
		for _, v := range st.Variants {
			// A model that is told of sequences serves the queries of one in their order.
			if m := r.w.Variants[v].Described; m != nil && m.Sequence != nil {
				st.Stateful = true
			}
		}
		app.Stages = append(app.Stages, id)
		s.Stages = append(s.Stages, st)
	}
	for _, st := range s.Stages[base:] {
		for _, e := range st.Next {
			s.Stages[e.To].Joins++
		}
	}
	s.Apps = append(s.Apps, app)
	r.accuracies(serving.AppID(i), path)
	w := wiring{r: r, file: a, app: &s.Apps[i], path: path}
	for _, n := range sorted {
		w.views = append(w.views, views[n])
	}
	w.resolve(serving.AppID(i))
	r.w.Apps = append(r.w.Apps, r.info(i, &w))
}

// accuracies reports a floor and a target that no variants reach.
func (r *resolver) accuracies(a serving.AppID, path string) {
	s := r.w.Spec
	app := &s.Apps[a]
	for _, st := range app.Stages {
		unrated := func(v serving.VariantID) bool { return r.w.Variants[v].Unrated }
		if slices.ContainsFunc(s.Stages[st].Variants, unrated) {
			return // a profile says how accurate they are
		}
		if best := s.BestOfStage(st); app.Floor > best {
			r.c.addf(path+".accuracy_floor", "is %v, but the most accurate variant of stage %q has %v: nothing could "+
				"answer", app.Floor, s.Stages[st].Name, best)
		}
	}
	switch best := s.BestAccuracy(a); {
	case app.AccuracyTarget == 0:
	case app.AccuracyTarget > best*(1+targetTolerance):
		r.c.addf(path+".accuracy_target", "is %v, but the most accurate answers of the app have %v", app.AccuracyTarget,
			best)
	case len(app.Stages) == 1 && app.AccuracyTarget < app.Floor:
		r.c.addf(path+".accuracy_target", "is %v, below accuracy_floor, which is %v: it asks for nothing more",
			app.AccuracyTarget, app.Floor)
	}
}

// targetTolerance lets the accuracy of several stages be written as their rounded product.
const targetTolerance = 1e-6

// function makes the one variant of a built-in function's stage.
func (r *resolver) function(v *stageView, app serving.AppID, stage serving.StageID) serving.VariantID {
	id := serving.VariantID(len(r.w.Spec.Variants))
	made := v.Variants[0]
	r.w.Spec.Variants = append(r.w.Spec.Variants, serving.Variant{
		Name: made.Name, Stage: stage, Accuracy: made.Accuracy, MaxBatch: made.MaxBatch,
	})
	with := v.With
	if read, ok := r.with[v.path]; ok {
		with = read
	}
	f, _ := ops.New(v.Function, with) // checked with the file, or when its options were read
	r.w.Variants = append(r.w.Variants, Binding{App: app, Function: f, With: with, Batched: true})
	return id
}

func (r *resolver) variant(v *Variant, path string, app serving.AppID, stage serving.StageID) serving.VariantID {
	id := serving.VariantID(len(r.w.Spec.Variants))
	out := serving.Variant{
		Name: v.Name, Stage: stage, Accuracy: v.Accuracy, Version: v.Version, MaxBatch: v.MaxBatch,
		MemoryBytes: int64(v.Memory), ItemBytes: int64(v.ItemMemory),
	}
	b := Binding{App: app, Model: v.Model, Version: v.Version, Batched: true, Mask: v.Mask,
		Unsized: v.Memory == 0 && v.ItemMemory == 0}
	if v.Python != "" {
		b.Python = r.python(v, path)
		if out.MemoryBytes == 0 {
			out.MemoryBytes = b.Python.bytes()
		}
	} else if m := r.model(v, path); m == nil {
		out.Pads = v.Mask != ""
	} else {
		found, err := m.Version(v.Version)
		if err != nil {
			r.c.addf(path+".version", "%v", err)
		} else {
			b.Path, b.Version = found.Path, strconv.FormatInt(found.Number, 10)
			out.Version = b.Version
			if out.MemoryBytes == 0 {
				out.MemoryBytes = found.Bytes
			}
		}
		b.Inputs, b.Outputs, b.Batched, b.Described = m.Inputs, m.Outputs, m.MaxBatch > 0, m
		b.Length = m.Length
		out.Pads = m.Pads(v.Mask)
		if v.Mask != "" && !out.Pads {
			r.c.addf(path+".mask", "is %q, but model %q has no such input of whole numbers or BOOL with the shape "+
				"[items, length]: want the name of one that has", v.Mask, m.Name)
		}
		switch bound := max(1, m.MaxBatch); {
		case out.MaxBatch == 0:
			out.MaxBatch = bound
		case out.MaxBatch > bound && !b.Batched:
			r.c.addf(path+".max_batch", "is %d, but model %q has no batch dimension", out.MaxBatch, m.Name)
		case out.MaxBatch > bound && m.Config.MaxBatchSize != nil:
			r.c.addf(path+".max_batch", "is %d, but max_batch_size of model %q is %d", out.MaxBatch, m.Name, bound)
		}
	}
	if v.Length != nil {
		b.Length = r.length(v.Length, path+".length", &b)
	}
	if out.MaxBatch == 0 {
		out.MaxBatch = defaultMaxBatch
	}
	r.w.Spec.Variants = append(r.w.Spec.Variants, out)
	r.w.Variants = append(r.w.Variants, b)
	return id
}

// queueNotApplied says that a model's queue was not taken over.
const queueNotApplied = "model %q: config.pbtxt: dynamic_batching is not applied: write the app's queue in " +
	"sluice.yaml, or have `sluice import triton` write it"

// warnOfQueue warns of a variant whose model says how it is queued, in a stage for which the file says nothing.
func (r *resolver) warnOfQueue(v serving.VariantID) {
	m := r.w.Variants[v].Described
	if m == nil || queueOf(m.Config.DynamicBatching) == nil {
		return
	}
	text := fmt.Sprintf(queueNotApplied, m.Name)
	if !slices.Contains(r.w.Warnings, text) {
		r.w.Warnings = append(r.w.Warnings, text)
	}
}

// whole makes a model take one query in a run, with all its rows.
func (r *resolver) whole(v serving.VariantID) {
	spec, b := &r.w.Spec.Variants[v], &r.w.Variants[v]
	if b.Batched {
		b.Rows, b.Batched = spec.MaxBatch, false
	}
	spec.MaxBatch = 1
}

// model reads a variant's model, once. It returns nil for a missing one, which is a problem only for models that run in
// this process.
func (r *resolver) model(v *Variant, path string) *repository.Model {
	if r.repo == nil {
		return nil
	}
	m, ok := r.models[v.Model]
	if !ok {
		var err error
		if m, err = r.repo.Model(v.Model); err != nil {
			m = nil
			if r.local || !errors.Is(err, repository.ErrNotFound) {
				known, _ := r.repo.Names()
				hint := ""
				if errors.Is(err, repository.ErrNotFound) && len(known) <= maxHints {
					hint, _ = didYouMean(v.Model, known)
				}
				r.c.addf(path+".model", "%v%s", err, hint)
			}
		}
		r.models[v.Model] = m
	} else if m == nil && r.local {
		r.c.addf(path+".model", "model %q cannot be used, see above", v.Model)
	}
	if m != nil && !r.warned[m.Name] {
		r.warned[m.Name] = true
		for _, u := range m.Unknown {
			r.w.warnf("model %q: config.pbtxt: %s is not read", m.Name, u)
		}
		for _, u := range m.Warnings {
			r.w.warnf("model %q: config.pbtxt: %s", m.Name, u)
		}
	}
	return m
}

// info collects the tensors of an app's requests and answers: those of the file, or those of its stages.
func (r *resolver) info(i int, w *wiring) AppInfo {
	a := &r.f.Apps[i]
	out := AppInfo{
		System: r.f.SystemOf(i), Demand: a.Demand, Items: a.Items.spec(), Inputs: w.requested(),
		Outputs: tensors(a.Outputs), Batched: w.batched(), Whole: a.Whole,
	}
	if out.Outputs == nil {
		out.Outputs = w.tensors.Answer()
	}
	out.Triton = r.described(w.app)
	w.app.Ensemble = out.Triton != nil && out.Triton.Config.EnsembleScheduling != nil
	return out
}

// described returns the model of the repository that an app is: an ensemble of its name, or that of its only stage.
func (r *resolver) described(a *serving.App) *repository.Model {
	var only *repository.Model
	if len(a.Stages) == 1 {
		only = r.w.Variants[r.w.Spec.Stages[a.Stages[0]].Variants[0]].Described
	}
	if r.repo == nil || repository.CheckName(a.Name) != nil || only != nil && only.Name == a.Name {
		return only
	}
	if m, err := r.repo.Configured(a.Name); err == nil && m.Config.EnsembleScheduling != nil {
		return m
	}
	return only
}

// agree returns the common tensors of a stage's variants, and reports differences: a client cannot know which variant
// will answer.
func (r *resolver) agree(variants []serving.VariantID, path, kind string,
	of func(*Binding) []tensor.Spec) []tensor.Spec {
	var first []tensor.Spec
	var from serving.VariantID
	for _, v := range variants {
		specs := of(&r.w.Variants[v])
		switch {
		case specs == nil:
		case first == nil:
			first, from = specs, v
		case !same(first, specs):
			r.c.addf(path,
				"variants %q and %q differ in their %s: %v and %v: a client cannot know which one will answer",
				r.w.Spec.Variants[from].Name, r.w.Spec.Variants[v].Name, kind, show(first), show(specs))
			return first
		}
	}
	return first
}

// same reports whether two lists have the same tensors, in any order. An unknown shape fits every shape.
func same(a, b []tensor.Spec) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		i := slices.IndexFunc(b, func(y tensor.Spec) bool { return y.Name == x.Name })
		if i < 0 || b[i].DType != x.DType || x.Shape != nil && b[i].Shape != nil && !slices.Equal(x.Shape, b[i].Shape) {
			return false
		}
	}
	return true
}

func show(specs []tensor.Spec) string {
	out := ""
	for i, s := range specs {
		if i > 0 {
			out += ", "
		}
		out += s.Name + " " + s.DType.String() + " ["
		for j, d := range s.Shape {
			if j > 0 {
				out += ","
			}
			out += strconv.FormatInt(d, 10)
		}
		out += "]"
	}
	return out
}

func tensors(list []Tensor) []tensor.Spec {
	var out []tensor.Spec
	for _, t := range list {
		out = append(out, tensor.Spec{Name: t.Name, DType: tensor.ParseDType(t.DataType), Shape: t.Shape})
	}
	return out
}
