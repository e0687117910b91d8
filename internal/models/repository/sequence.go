package repository

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Sequence says which inputs of a model its requests do not bring, since they follow from the sequence that a request
// is part of.
type Sequence struct {
	Controls []Control
	States   []State
}

// Control is an input that tells a model something of its request's sequence, one element for each item.
type Control struct {
	Name string
	// Kind is what it tells: whether the request is the first or the last of its sequence, whether there is a request
	// at all, or the number of the sequence.
	Kind  pb.ModelSequenceBatching_Control_Kind
	DType tensor.DType
	Shape []int64 // as in the model file
	// False and True are an element that says no and one that says yes; they are empty for the number of the sequence.
	False, True []byte
}

// Hides reports whether an input or output of the model file is one that no client sees.
func (s *Sequence) Hides(name string) bool {
	return slices.ContainsFunc(s.Controls, func(c Control) bool { return c.Name == name }) ||
		slices.ContainsFunc(s.States, func(x State) bool { return x.Input == name || x.Output == name && !x.Shown })
}

// splitSequence takes the inputs and outputs that no client sees out of a model file's, and describes them in
// m.Sequence.
func (m *Model) splitSequence(r *Repository, in, out []tensor.Spec) (restIn, restOut []tensor.Spec, err error) {
	c := m.Config.SequenceBatching
	if c == nil {
		return in, out, nil
	}
	m.Sequence = &Sequence{}
	take := func(from *[]tensor.Spec, kind, name string) (tensor.Spec, error) {
		k := slices.IndexFunc(*from, func(s tensor.Spec) bool { return s.Name == name })
		if k < 0 {
			return tensor.Spec{}, fmt.Errorf("config.pbtxt: sequence_batching: %s %q: the model file has no such %s",
				kind, name, kind)
		}
		found := (*from)[k]
		*from = slices.Delete(slices.Clone(*from), k, k+1)
		return found, nil
	}
	for _, x := range c.ControlInput {
		s, err := take(&in, "input", x.Name)
		if err == nil && (len(s.Shape) == 0 || slices.Contains(s.Shape[1:], -1)) {
			err = fmt.Errorf("config.pbtxt: sequence_batching: input %q has shape %v: only the batch may be "+
				"variable", x.Name, tensor.Dims(s.Shape))
		}
		if err != nil {
			return nil, nil, err
		}
		for _, y := range x.Control {
			one, err := control(y, &s)
			if err != nil {
				return nil, nil, fmt.Errorf("config.pbtxt: sequence_batching.control_input %q: %w", x.Name, err)
			}
			m.Sequence.Controls = append(m.Sequence.Controls, one)
		}
		if len(x.Control) != 1 {
			return nil, nil, fmt.Errorf("config.pbtxt: sequence_batching.control_input %q has %d controls, want 1",
				x.Name,
				len(x.Control))
		}
	}
	for _, x := range c.State {
		s, err := take(&in, "input", x.InputName)
		if err != nil {
			return nil, nil, err
		}
		given, err := take(&out, "output", x.OutputName)
		if err != nil {
			return nil, nil, err
		}
		one, err := m.state(r, x, &s, &given)
		if err != nil {
			return nil, nil, fmt.Errorf("config.pbtxt: sequence_batching.state %q: %w", x.InputName, err)
		}
		if one.Shown {
			out = append(out, given)
		}
		m.Sequence.States = append(m.Sequence.States, *one)
	}
	return in, out, nil
}

// control reads what a control input says.
func control(c *pb.ModelSequenceBatching_Control, s *tensor.Spec) (Control, error) {
	out := Control{Name: s.Name, Kind: c.Kind, DType: s.DType, Shape: s.Shape}
	if c.Kind == pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID {
		switch s.DType {
		case tensor.Uint64, tensor.Int64, tensor.Uint32, tensor.Int32, tensor.Bytes:
			return out, nil
		}
		return out, fmt.Errorf("is %s, want UINT64, INT64, UINT32, INT32 or BYTES", s.DType)
	}
	var given tensor.DType
	var err error
	switch {
	case len(c.Int32FalseTrue) == 2:
		given = tensor.Int32
		out.False, out.True = int32Element(c.Int32FalseTrue[0]), int32Element(c.Int32FalseTrue[1])
	case len(c.Fp32FalseTrue) == 2:
		given = tensor.FP32
		out.False, out.True = fp32Element(c.Fp32FalseTrue[0]), fp32Element(c.Fp32FalseTrue[1])
	case len(c.BoolFalseTrue) == 2:
		given = tensor.Bool
		out.False, out.True = boolElement(c.BoolFalseTrue[0]), boolElement(c.BoolFalseTrue[1])
	default:
		err = fmt.Errorf("%s needs two values of one type: false and true", c.Kind)
	}
	if err == nil && given != s.DType {
		err = fmt.Errorf("is %s in the model file, its values are %s", s.DType, given)
	}
	return out, err
}
