package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/models/repository/pb"
)

// fromRequest is the source of tensors that no step produces.
const fromRequest = -1

// dataFlow records which step produces each of an ensemble's tensors and which steps take them.
type dataFlow struct {
	given  map[string]int  // tensor to the step that produces it
	hidden map[string]bool // names of outputs that the ensemble drops
	needs  [][]int         // by step: the steps whose tensors it takes
	first  int
}

// addOutputs records the tensors that a step produces.
func (g *dataFlow) addOutputs(k int, s *pb.ModelEnsembling_Step, m *member) error {
	g.needs = append(g.needs, nil)
	for _, out := range slices.Sorted(maps.Keys(s.OutputMap)) {
		name := s.OutputMap[out]
		if m.outputs != nil && !slices.Contains(m.outputs, out) {
			return fmt.Errorf("output_map: %q is no output of model %q, which has %s", out, m.Name, oneOf(m.outputs))
		}
		if name == "" {
			return fmt.Errorf("output_map: the tensor of output %q has no name", out)
		}
		if _, ok := g.given[name]; ok {
			return fmt.Errorf("output_map: tensor %q is given twice", name)
		}
		g.given[name] = k
	}
	return nil
}

// addInputs records which steps a step depends on.
func (g *dataFlow) addInputs(k int, s *pb.ModelEnsembling_Step, m *member) error {
	for _, in := range m.inputs {
		if s.InputMap[in] == "" {
			return fmt.Errorf("input_map: input %q of model %q is not given", in, m.Name)
		}
	}
	for _, in := range slices.Sorted(maps.Keys(s.InputMap)) {
		name := s.InputMap[in]
		if m.inputs != nil && !slices.Contains(m.inputs, in) {
			return fmt.Errorf("input_map: %q is no input of model %q, which has %s", in, m.Name, oneOf(m.inputs))
		}
		from, ok := g.given[name]
		if !ok {
			hint := ""
			if len(g.given) <= maxHints {
				hint, _ = didYouMean(name, slices.Sorted(maps.Keys(g.given)))
			}
			return fmt.Errorf("input_map: neither a request nor a step gives tensor %q%s", name, hint)
		}
		if from != fromRequest && !slices.Contains(g.needs[k], from) {
			g.needs[k] = append(g.needs[k], from)
		}
	}
	return nil
}

// connect makes the edges between the stages. A step follows those that it needs, without edges that a longer path
// implies. The first step that needs nothing becomes the first stage. Other steps that need nothing follow it and are
// returned.
func (g *dataFlow) connect(stages []Stage) (later []int, err error) {
	g.first = fromRequest
	for k := range g.needs {
		switch {
		case len(g.needs[k]) > 0:
		case g.first == fromRequest:
			g.first = k
		default:
			later = append(later, k)
			g.needs[k] = []int{g.first}
		}
	}
	before := make([]map[int]bool, len(stages)) // nil until known
	for left := len(stages); left > 0; {
		n := left
		for k := range stages {
			if before[k] != nil || slices.ContainsFunc(g.needs[k], func(d int) bool { return before[d] == nil }) {
				continue
			}
			before[k] = make(map[int]bool)
			for _, d := range g.needs[k] {
				before[k][d] = true
				maps.Copy(before[k], before[d])
			}
			left--
		}
		if left == n {
			var names []string
			for k := range stages {
				if before[k] == nil {
					names = append(names, fmt.Sprintf("%q", stages[k].Name))
				}
			}
			return nil, fmt.Errorf("its steps wait for each other: look at %s", oneOf(names))
		}
	}
	for k := range stages {
		slices.Sort(g.needs[k])
		for _, d := range g.needs[k] {
			if !slices.ContainsFunc(g.needs[k], func(other int) bool { return before[other][d] }) {
				stages[d].Next = append(stages[d].Next, Edge{To: stages[k].Name, FanOut: 1})
			}
		}
	}
	return later, nil
}
