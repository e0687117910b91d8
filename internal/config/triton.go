package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Importing are the options of ImportTriton.
type Importing struct {
	// Objectives are latency objectives, by app. Other apps get one that is not thought of.
	Objectives map[string]time.Duration
	// Here leaves out models that cannot run in this process, where else all models are left to a Triton that goes on
	// running.
	Here bool
	// Remarks has notes say, too, what is taken over and means something else here: for a file that somebody keeps.
	Remarks bool
	// Only is the one model to import; "" for all of the repository.
	Only string
	// Repository is an open one in place of the folder; nil for none.
	Repository *repository.Repository
	// Models are the settings of models.control, models.load and models.poll to write.
	Models Models
}

// ImportTriton makes a commented sluice.yaml of a Triton model repository. Each ensemble becomes an app whose stages
// are its steps; each other model that is no step becomes an app of its own. notes list what has no counterpart, a
// sentence each; the file contains them as comments. out is the path of the file: a relative dir is rewritten relative
// to it. It returns an error when no model of the repository can be served.
func ImportTriton(dir, out string, o Importing) (text []byte, notes []string, err error) {
	return importTriton(dir, out, o, machine{cores: runtime.NumCPU(), memory: totalMemory()})
}

func importTriton(dir, out string, o Importing, m machine) ([]byte, []string, error) {
	repo := o.Repository
	if repo == nil {
		opened, err := repository.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = opened.Close() }()
		repo = opened
	}
	im := &importer{repo: repo, here: o.Here, only: o.Only, control: o.Models, members: make(map[string]*member)}
	if err := im.read(); err != nil {
		return nil, nil, err
	}
	if o.Remarks {
		im.remarks()
	}
	where := dir
	if !filepath.IsAbs(dir) {
		var err error
		if where, err = filepath.Rel(filepath.Dir(out), dir); err != nil {
			return nil, nil, err
		}
	}
	for i := range im.apps {
		im.apps[i].SLO.Latency = Duration(o.Objectives[im.apps[i].Name])
	}
	// The written file must be readable, and the models must fit together. What does not is left out.
	for {
		var b bytes.Buffer
		im.write(&b, filepath.ToSlash(where), m)
		f, err := Parse(b.Bytes(), out)
		if err == nil {
			_, err = f.ResolveFrom(o.Repository)
		}
		if err == nil {
			return b.Bytes(), im.notes, nil
		}
		if !im.drop(err) {
			return nil, nil, fmt.Errorf("the models of %s do not make a valid configuration: %w", dir, err)
		}
	}
}

// drop leaves out the apps that have problems. It reports false where there are other problems, or no app would be
// left.
func (im *importer) drop(err error) bool {
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return false
	}
	first := make(map[string]Problem)
	for _, p := range problems {
		k, ok := appOf(p.Path)
		if !ok || k >= len(im.apps) {
			return false
		}
		if _, have := first[im.apps[k].Name]; !have {
			first[im.apps[k].Name] = p
		}
	}
	if len(first) == len(im.apps) {
		return false
	}
	for _, a := range im.apps {
		if p, out := first[a.Name]; out {
			_, field, _ := strings.Cut(p.Path, "].")
			im.notef("model %q is left out: %s: %s", a.Name, field, p.Text)
		}
	}
	im.apps = slices.DeleteFunc(im.apps, func(a App) bool { _, out := first[a.Name]; return out })
	im.place = slices.DeleteFunc(im.place, func(p Placement) bool { _, out := first[p.App]; return out })
	return true
}

// appOf is the app that a problem at a path is about.
func appOf(path string) (app int, ok bool) {
	rest, ok := strings.CutPrefix(path, "apps[")
	number, _, closed := strings.Cut(rest, "]")
	app, err := strconv.Atoi(number)
	return app, ok && closed && err == nil
}

// RunsHere reports whether the models of an imported file run in this process.
func RunsHere(text []byte) bool {
	f, err := Parse(text, "sluice.yaml")
	return err == nil && !slices.ContainsFunc(f.Workers, func(w Worker) bool { return w.Backend.Kind != "onnx" })
}

// importer collects the apps of a repository.
type importer struct {
	repo    *repository.Repository
	members map[string]*member
	apps    []App
	place   []Placement // of all stages, in the order of apps
	placed  bool        // some of them has settings
	only    string      // the one model to import; "" for all
	control Models      // settings of the file that is written
	here    bool        // models that cannot run in this process are left out
	remote  bool        // some model cannot run in this process: Triton runs all of them
	notes   []string

	functions map[string]map[string]string // options of the functions that stages run, by the stage's name
}

// member is a model of the repository.
type member struct {
	*repository.Model
	inputs, outputs []string // nil when not known
	local           bool     // an ONNX model whose file could be read
}

func (im *importer) notef(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(im.notes, s) {
		im.notes = append(im.notes, s)
	}
}

func (im *importer) read() error {
	names, err := im.wanted()
	if err != nil {
		return err
	}
	if err := im.control.CheckCount(len(names), "in model repository "+im.repo.Dir()); err != nil {
		return err
	}
	var plain []string
	for _, name := range names {
		c, err := im.repo.Configured(name)
		if err != nil {
			im.notef("%v: it is left out", err)
			continue
		}
		if c.Config.EnsembleScheduling == nil {
			plain = append(plain, name)
			continue
		}
		app, err := im.ensemble(c)
		if err != nil {
			im.notef("ensemble %q is left out: %v", name, err)
			continue
		}
		im.add(app)
	}
	for _, name := range plain {
		if err := im.singleModel(name); err != nil {
			im.notef("model %q is left out: %s", name, strings.TrimPrefix(err.Error(), fmt.Sprintf("model %q: ", name)))
		}
	}
	if len(im.apps) == 0 && im.only != "" {
		return errors.New(strings.Join(im.notes, "; "))
	}
	if len(im.apps) == 0 && !im.control.Changes() {
		why := im.notes
		if hint := im.repo.Misplaced(); hint != "" {
			why = append([]string{hint}, why...)
		}
		return fmt.Errorf("nothing of model repository %s can be served: %s", im.repo.Dir(), strings.Join(why, "\n"))
	}
	return nil
}

// wanted lists the models to read: all of the repository, the only one, or under explicit control those to begin with
// and those that they are made of.
func (im *importer) wanted() (names []string, err error) {
	switch {
	case im.only != "":
		return []string{im.only}, nil
	case im.control.Control != ControlExplicit || slices.Contains(im.control.Load, AllModels):
		return im.repo.Names()
	}
	var add func(name string)
	add = func(name string) {
		if slices.Contains(names, name) {
			return
		}
		names = append(names, name)
		if m, err := im.repo.Configured(name); err == nil {
			for _, s := range m.Config.GetEnsembleScheduling().GetStep() {
				add(s.ModelName)
			}
		}
	}
	for _, name := range im.control.Load {
		add(name)
	}
	slices.Sort(names)
	return names, nil
}

// member reads a model.
func (im *importer) member(name string) (*member, error) {
	if m := im.members[name]; m != nil {
		return m, nil
	}
	c, err := im.repo.Configured(name)
	if err != nil {
		return nil, err
	}
	m := &member{Model: c}
	for _, u := range c.Unknown {
		im.notef("model %q: config.pbtxt: %s is not read", name, u)
	}
	onnx := (c.Config.Platform == "" || c.Config.Platform == "onnxruntime_onnx") &&
		(c.Config.Backend == "" || c.Config.Backend == "onnxruntime")
	if onnx && c.Config.EnsembleScheduling == nil {
		if m.Model, err = im.repo.Model(name); err != nil {
			return nil, err
		}
		m.local = true
		for _, s := range m.Inputs {
			m.inputs = append(m.inputs, s.Name)
		}
		for _, s := range m.Outputs {
			m.outputs = append(m.outputs, s.Name)
		}
	} else {
		for _, s := range c.Config.Input {
			m.inputs = append(m.inputs, s.Name)
		}
		for _, s := range c.Config.Output {
			m.outputs = append(m.outputs, s.Name)
		}
	}
	im.members[name] = m
	return m, nil
}

// checkSupported notes settings of a model without a counterpart, and returns an error when one of them prevents
// serving it.
func (im *importer) checkSupported(m *member) error {
	c := m.Config
	if c.SequenceBatching != nil && !m.local {
		return errors.New("sequence_batching is supported for ONNX models that run in this process")
	}
	if !m.local && im.here {
		return fmt.Errorf("it is no ONNX model (backend %q, platform %q), and other models do not run here", c.Backend,
			c.Platform)
	}
	for _, w := range m.Warnings {
		if !strings.HasPrefix(w, "instance_group") && (!im.remote || !strings.Contains(w, "only ONNX models")) {
			im.notef("model %q: config.pbtxt: %s", m.Name, w)
		}
	}
	if !m.local && !im.remote {
		im.remote = true
		im.notef("model %q is not run by ONNX Runtime: no model is run in this process, all are asked of a Triton "+
			"that goes on running", m.Name)
	}
	if slices.ContainsFunc(c.InstanceGroup, func(g *pb.ModelInstanceGroup) bool {
		return g.Kind == pb.ModelInstanceGroup_KIND_GPU || len(g.Gpus) > 0
	}) {
		im.notef("model %q: instance_group asks for GPUs: describe the machines that have them under device_types "+
			"and workers", m.Name)
	}
	if d := c.DynamicBatching; d != nil && m.local {
		if d.PriorityLevels > maxLevels {
			im.notef("model %q: priority_levels is %d: here a queue has at most %d, and what is beyond has the "+
				"default priority", m.Name, d.PriorityLevels, maxLevels)
		}
		if d.PreserveOrdering {
			im.notef("model %q: preserve_ordering is not applied: answers come as their batches end", m.Name)
		}
	}
	if c.DynamicBatching != nil && !m.local {
		im.notef("model %q: dynamic_batching is left to the Triton that runs it", m.Name)
	}
	return nil
}

// variant returns the model as a variant of a stage.
func (m *member) variant(name string, version int64) Variant {
	v := Variant{Name: name, Model: m.Name, MaxBatch: int(max(m.Config.GetMaxBatchSize(), 0))}
	if version > 0 {
		v.Version = fmt.Sprint(version)
		if m.local && version != m.Latest().Number {
			v.Name += "-v" + v.Version // profiles tell versions of a model apart by the names of variants
		}
	}
	return v
}

// placement returns how many batches at once, and of which size, Triton runs of the model.
func (m *member) placement(app, stage string) Placement {
	p := Placement{App: app, Stage: stage, Slots: 1}
	slots := 0
	for _, g := range m.Config.InstanceGroup {
		slots += int(max(g.Count, 1))
	}
	p.Slots = min(max(slots, 1), maxSlots)
	if d := m.Config.DynamicBatching; d != nil && len(d.PreferredBatchSize) > 0 {
		p.BatchLimit = int(slices.Max(d.PreferredBatchSize))
	}
	return p
}

// add adds an app with the placement of its stages.
func (im *importer) add(a App) {
	im.apps = append(im.apps, a)
	stage := func(name, model string) {
		p := Placement{App: a.Name, Stage: name, Slots: 1}
		if m := im.members[model]; m != nil {
			p = m.placement(a.Name, name)
		}
		if a.Whole {
			p.BatchLimit = 0
		}
		im.placed = im.placed || p.Slots > 1 || p.BatchLimit > 0
		im.place = append(im.place, p)
	}
	for _, v := range a.Variants {
		stage(a.Name, v.Model)
	}
	for _, s := range a.Stages {
		model := ""
		if len(s.Variants) > 0 {
			model = s.Variants[0].Model
		}
		stage(s.Name, model)
	}
}

// singleModel makes an app of a model that is no step of an ensemble.
func (im *importer) singleModel(name string) error {
	m, err := im.member(name)
	if err != nil {
		return err
	}
	if err := im.checkSupported(m); err != nil {
		return err
	}
	a := App{Name: name, Variants: []Variant{m.variant(name, 0)}}
	if m.local {
		a.setQueue(queueOf(m.Config.DynamicBatching))
	}
	a.Inputs, a.Outputs = interfaceOf(m.Config)
	a.Inputs = slices.DeleteFunc(a.Inputs, func(t Tensor) bool {
		return slices.ContainsFunc(m.Optional, func(s tensor.Spec) bool { return s.Name == t.Name })
	})
	im.add(a)
	if !m.local {
		return nil
	}
	// Every version that the policy chooses is served. The latest answers who names none.
	for _, v := range m.Versions[:len(m.Versions)-1] {
		old := App{Name: name + "@" + strconv.FormatInt(v.Number, 10), VersionOf: name, Inputs: a.Inputs,
			Outputs: a.Outputs, Late: a.Late, Queue: a.Queue, QueueLimit: a.QueueLimit}
		old.Variants = []Variant{m.variant(name, v.Number)}
		im.add(old)
	}
	return nil
}

// interfaceOf lists the tensors of a configuration as clients see them.
func interfaceOf(c *pb.ModelConfig) (in, out []Tensor) {
	one := func(name string, t pb.DataType, dims []int64) Tensor {
		shape := slices.Clone(dims)
		if c.GetMaxBatchSize() > 0 {
			shape = append([]int64{-1}, dims...)
		}
		return Tensor{Name: name, DataType: repository.DType(t).String(), Shape: shape}
	}
	for _, x := range c.Input {
		in = append(in, one(x.Name, x.DataType, x.Dims))
	}
	for _, x := range c.Output {
		out = append(out, one(x.Name, x.DataType, x.Dims))
	}
	return in, out
}
