package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
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
	steps, err := im.steps(&a, config.EnsembleScheduling.Step, []string{c.Name})
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
	if a.Whole = im.mixed(&a, config, steps); a.Whole {
		for k := range a.Stages {
			a.Stages[k].alone()
		}
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
	return a, im.answer(&a, &g, config, steps)
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
// of another step goes to a final stage that passes it on. So does every output of a single step that has another name
// in the ensemble, because tensors are renamed between stages only, and those that have a batch dimension in the
// ensemble and none in the step, or the other way round.
func (im *importer) answer(a *App, g *flow, c *pb.ModelConfig, steps []*pb.ModelEnsembling_Step) error {
	change := make([]string, len(c.Output)) // of the batch dimension
	final := make([]bool, len(a.Stages))
	for k := range a.Stages {
		final[k] = len(a.Stages[k].Next) == 0
	}
	if len(a.Stages) == 1 &&
		(renames(a.Stages[0].Inputs) || renames(a.Stages[0].Outputs) || im.rebatches(a, steps[0])) {
		final[0] = false
	}
	for i, out := range c.Output {
		from, ok := g.given[out.Name]
		if !ok || from == pipeline.Request {
			return fmt.Errorf("output[%d]: no step gives tensor %q", i, out.Name)
		}
		m := im.members[steps[from].ModelName]
		for port, name := range steps[from].OutputMap {
			if name == out.Name {
				var err error
				if change[i], err = m.answering(port, a.Outputs[i], c.GetMaxBatchSize() > 0); err != nil {
					return fmt.Errorf("output[%d]: %w", i, err)
				}
			}
		}
		final[from] = final[from] && change[i] == ""
	}
	for i, out := range c.Output {
		from := g.given[out.Name]
		if final[from] {
			continue
		}
		s := Stage{Name: stageName(a.Stages, "answer-"+out.Name), Function: "identity",
			Inputs: map[string]string{"tensor": out.Name}, Outputs: map[string]string{"tensor": out.Name}}
		if change[i] != "" {
			s.With = map[string]string{"batch": change[i]}
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
	if len(a.Stages) > maxStages {
		return fmt.Errorf("it would have %d stages, more than %d", len(a.Stages), maxStages)
	}
	return nil
}

// renames tells whether a map gives a tensor another name.
func renames(m map[string]string) bool {
	for from, to := range m {
		if from != to {
			return true
		}
	}
	return false
}
