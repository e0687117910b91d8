package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/models/repository/pb"
)

// theRequest gives tensors that no step gives.
const theRequest = -1

// flow is the way of an ensemble's tensors from step to step.
type flow struct {
	given  map[string]int  // tensor to the step that gives it
	hidden map[string]bool // names of outputs that the ensemble drops
	needs  [][]int         // by step: those whose tensors it takes
	first  int
}

// gives notes the tensors of a step.
func (g *flow) gives(k int, s *pb.ModelEnsembling_Step, m *member) error {
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

// takes notes which steps a step waits for.
func (g *flow) takes(k int, s *pb.ModelEnsembling_Step, m *member) error {
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
		if from != theRequest && !slices.Contains(g.needs[k], from) {
			g.needs[k] = append(g.needs[k], from)
		}
	}
	return nil
}

// connect draws the edges between the stages. A step follows those that it needs, without edges that a longer way
// already implies. The first step that needs nothing becomes the first stage; the others that need nothing follow it
// and are returned.
func (g *flow) connect(stages []Stage) (later []int, err error) {
	g.first = theRequest
	for k := range g.needs {
		switch {
		case len(g.needs[k]) > 0:
		case g.first == theRequest:
			g.first = k
		default:
			later = append(later, k)
			g.needs[k] = []int{g.first}
		}
	}
	before := make([]map[int]bool, len(stages)) // nil until it is known
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
