package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// flow is the way of an ensemble's tensors from step to step.
type flow struct {
	given  map[string]int  // tensor to the step that gives it
	hidden map[string]bool // names of outputs that the ensemble drops
	needs  [][]int         // by step: those whose tensors it takes
	first  int
}

// fits reports an input of a step's model that it does not get, and names that are no input or output of the model.
func (m *member) fits(s *pb.ModelEnsembling_Step) error {
	for _, in := range m.inputs {
		if s.InputMap[in] == "" {
			return fmt.Errorf("input_map: input %q of model %q is not given", in, m.Name)
		}
	}
	for _, in := range slices.Sorted(maps.Keys(s.InputMap)) {
		if m.inputs != nil && !slices.Contains(m.inputs, in) {
			return fmt.Errorf("input_map: %q is no input of model %q, which has %s", in, m.Name, oneOf(m.inputs))
		}
	}
	for _, out := range slices.Sorted(maps.Keys(s.OutputMap)) {
		if m.outputs != nil && !slices.Contains(m.outputs, out) {
			return fmt.Errorf("output_map: %q is no output of model %q, which has %s", out, m.Name, oneOf(m.outputs))
		}
		if s.OutputMap[out] == "" {
			return fmt.Errorf("output_map: the tensor of output %q has no name", out)
		}
	}
	return nil
}

// gives notes the tensors of a step.
func (g *flow) gives(k int, s *pb.ModelEnsembling_Step) error {
	g.needs = append(g.needs, nil)
	for _, out := range slices.Sorted(maps.Keys(s.OutputMap)) {
		name := s.OutputMap[out]
		if _, ok := g.given[name]; ok {
			return fmt.Errorf("output_map: tensor %q is given twice", name)
		}
		g.given[name] = k
	}
	return nil
}

// takes notes which steps a step waits for.
func (g *flow) takes(k int, s *pb.ModelEnsembling_Step) error {
	for _, in := range slices.Sorted(maps.Keys(s.InputMap)) {
		name := s.InputMap[in]
		from, ok := g.given[name]
		if !ok {
			hint := ""
			if len(g.given) <= maxHints {
				hint, _ = didYouMean(name, slices.Sorted(maps.Keys(g.given)))
			}
			return fmt.Errorf("input_map: neither a request nor a step gives tensor %q%s", name, hint)
		}
		if from != pipeline.Request && !slices.Contains(g.needs[k], from) {
			g.needs[k] = append(g.needs[k], from)
		}
	}
	return nil
}

// connect draws the edges between the stages. A step follows those that it needs, without edges that a longer way
// already implies. The first step that needs nothing becomes the first stage; the others that need nothing follow it
// and are returned.
func (g *flow) connect(stages []Stage) (later []int, err error) {
	g.first = pipeline.Request
	for k := range g.needs {
		switch {
		case len(g.needs[k]) > 0:
		case g.first == pipeline.Request:
			g.first = k
		default:
			later = append(later, k)
			g.needs[k] = []int{g.first}
		}
	}
	next := make([][]int, len(stages))
	for k := range g.needs {
		slices.Sort(g.needs[k])
		for _, d := range g.needs[k] {
			next[d] = append(next[d], k)
		}
	}
	if _, stuck := pipeline.Order(next); len(stuck) > 0 {
		names := make([]string, len(stuck))
		for i, k := range stuck {
			names[i] = strconv.Quote(stages[k].Name)
		}
		return nil, fmt.Errorf("its steps wait for each other: look at %s", oneOf(names))
	}
	ancestors := pipeline.Ancestors(next)
	for k := range stages {
		for _, d := range g.needs[k] {
			implied := func(other int) bool { return slices.Contains(ancestors[other], d) }
			if !slices.ContainsFunc(g.needs[k], implied) {
				stages[d].Next = append(stages[d].Next, Edge{To: stages[k].Name, FanOut: 1})
			}
		}
	}
	return later, nil
}
