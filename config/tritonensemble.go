package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/models/repository"
	"github.com/sluice-serving/sluice/models/repository/pb"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// ensemble makes an app of an ensemble. A step is a stage, which every item passes on its own; the tensors of the
// ensemble are those of the query.
func (im *importer) ensemble(c *repository.Model) (App, error) {
	config := c.Config
	for _, u := range c.Unknown {
		im.notef("ensemble %q: config.pbtxt: %s is not read", c.Name, u)
	}
	for _, w := range c.Warnings {
		im.notef("ensemble %q: config.pbtxt: %s", c.Name, w)
	}
	a := App{Name: c.Name}
	a.Inputs, a.Outputs = interfaceOf(config)
	steps, err := im.steps(config.EnsembleScheduling.Step, []string{c.Name})
	switch {
	case err != nil:
		return a, err
	case len(steps) == 0:
		return a, errors.New("ensemble_scheduling has no step")
	case len(a.Inputs) == 0 || len(a.Outputs) == 0:
		return a, errors.New("its config.pbtxt lists no input or no output")
	}
	g := flow{given: make(map[string]int), hidden: make(map[string]bool)}
	for _, in := range a.Inputs {
		g.given[in.Name] = pipeline.Request
	}
	for k, s := range steps {
		m, err := im.member(s.ModelName)
		if err != nil {
			return a, fmt.Errorf("step[%d]: %w", k, err)
		}
		if err := im.checkSupported(m); err != nil {
			return a, fmt.Errorf("step[%d]: model %q: %w", k, s.ModelName, err)
		}
		a.Stages = append(a.Stages, Stage{
			Name: stageName(a.Stages, s.ModelName), Inputs: s.InputMap, Outputs: maps.Clone(s.OutputMap),
		})
		st := &a.Stages[k]
		st.Variants = []Variant{m.variant(st.Name, s.ModelVersion)}
		if m.local {
			st.Queue = queueOf(m.Config.DynamicBatching)
			a.keepsQueue(st.Queue)
		}
		if err := m.fits(s); err != nil {
			return a, fmt.Errorf("step[%d]: %w", k, err)
		}
		if err := g.gives(k, s); err != nil {
			return a, fmt.Errorf("step[%d]: %w", k, err)
		}
	}
	for k, s := range steps {
		if err := g.takes(k, s); err != nil {
			return a, fmt.Errorf("step[%d]: %w", k, err)
		}
		im.hide(&a.Stages[k], &g, im.members[s.ModelName])
	}
	later, err := g.connect(a.Stages)
	if err != nil {
		return a, err
	}
	for _, k := range later {
		im.notef("ensemble %q: steps %q and %q could begin together; an app has one first stage, so that %q begins "+
			"when %q is done",
			c.Name, a.Stages[g.first].Name, a.Stages[k].Name, a.Stages[k].Name, a.Stages[g.first].Name)
	}
	first := im.members[steps[g.first].ModelName]
	if limit, own := config.GetMaxBatchSize(), first.Config.GetMaxBatchSize(); limit > 0 && own > limit {
		im.notef("ensemble %q: max_batch_size is %d, and that of its first model %q is %d, which is what bounds a "+
			"request", c.Name, limit, first.Name, own)
	}
	return a, im.answer(&a, &g, config)
}

// stageName names a step after its model; a model that is used again is numbered.
func stageName(have []Stage, model string) string {
	name := model
	for n := 2; slices.ContainsFunc(have, func(s Stage) bool { return s.Name == name }); n++ {
		name = model + "-" + strconv.Itoa(n)
	}
	return name
}

// hide gives outputs of a model that the ensemble drops names of their own where they would pass for tensors of the
// ensemble.
func (im *importer) hide(s *Stage, g *flow, m *member) {
	for _, out := range m.outputs {
		if _, taken := g.given[out]; !taken || s.Outputs[out] != "" {
			continue
		}
		name := s.Name + "." + out
		for _, taken := g.given[name]; taken || g.hidden[name]; _, taken = g.given[name] {
			name += "."
		}
		if s.Outputs == nil {
			s.Outputs = make(map[string]string)
		}
		s.Outputs[out] = name
		g.hidden[name] = true
	}
}

// answer makes the app answer with the ensemble's outputs. Outputs of final stages are answers as they are. An output
// of another step goes to a final stage that passes it on: a reshape to the shape that it has. So does every output of
// a single step that has another name in the ensemble, because tensors are renamed between stages only.
func (im *importer) answer(a *App, g *flow, c *pb.ModelConfig) error {
	var final []int
	renames := func(m map[string]string) bool {
		for from, to := range m {
			if from != to {
				return true
			}
		}
		return false
	}
	alone := len(a.Stages) == 1 && (renames(a.Stages[0].Inputs) || renames(a.Stages[0].Outputs))
	for k := range a.Stages {
		if len(a.Stages[k].Next) == 0 && !alone {
			final = append(final, k)
		}
	}
	for i, out := range c.Output {
		from, ok := g.given[out.Name]
		if !ok || from == pipeline.Request {
			return fmt.Errorf("output[%d]: no step gives tensor %q", i, out.Name)
		}
		if slices.Contains(final, from) {
			continue
		}
		open, dims := 0, make([]string, len(out.Dims))
		for d, n := range out.Dims {
			if dims[d] = strconv.FormatInt(n, 10); n < 0 {
				open++
			}
		}
		if open > 1 || len(dims) > 8 {
			im.notef("ensemble %q: output %q is not in the answer: step %q gives it, which is not among the last, "+
				"and its shape %v is too open to pass it on",
				a.Name, out.Name, a.Stages[from].Name, out.Dims)
			a.Outputs = slices.DeleteFunc(a.Outputs, func(t Tensor) bool { return t.Name == out.Name })
			continue
		}
		s := Stage{Name: stageName(a.Stages, "answer-"+out.Name), Function: "reshape",
			With:   map[string]string{"shape": strings.Join(dims, ",")},
			Inputs: map[string]string{"tensor": out.Name}, Outputs: map[string]string{"tensor": out.Name}}
		if c.GetMaxBatchSize() == 0 {
			s.With["whole"] = "true"
		}
		if with, ok := im.functions[s.Name]; ok && !maps.Equal(with, s.With) {
			s.Name = stageName(a.Stages, "answer-"+a.Name+"-"+out.Name) // profiles tell functions apart by their names
		}
		if im.functions == nil {
			im.functions = make(map[string]map[string]string)
		}
		im.functions[s.Name] = s.With
		a.Stages[from].Next = append(a.Stages[from].Next, Edge{To: s.Name, FanOut: 1})
		a.Stages = append(a.Stages, s)
	}
	if len(a.Outputs) == 0 || alone && len(a.Stages) == 1 {
		return errors.New("none of its outputs can be in an answer")
	}
	if len(a.Stages) > maxStages {
		return fmt.Errorf("it would have %d stages, more than %d", len(a.Stages), maxStages)
	}
	return nil
}
