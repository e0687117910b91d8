package repository

import (
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// initialStates is the folder of a model that has the files of its initial states, as in Triton.
	initialStates = "initial_state"
	// maxStateBytes bounds a file of initial_state.
	maxStateBytes = 64 << 20
)

// State is an input that gets what an output gave for the request before it in the sequence.
type State struct {
	Input, Output string
	DType         tensor.DType
	Shape         []int64 // as in the model file
	// Start is the shape of one item at the start of a sequence, without the batch dimension.
	Start []int64
	// First is the item at the start of a sequence; nil for zeros, or empty strings.
	First []byte
	// Shown says that clients may ask for the output, too.
	Shown bool
}

// Fixed reports whether the state of an item always has the same number of bytes.
func (s *State) Fixed() bool {
	return s.DType != tensor.Bytes && !slices.Contains(s.Shape[len(s.Shape)-len(s.Start):], -1)
}

// Begin returns n items at the start of a sequence, as they are on the wire.
func (s *State) Begin(n int64) ([]byte, error) {
	size := int64(s.DType.Size())
	if s.DType == tensor.Bytes {
		size = 4 // the length of an empty string
	}
	each, err := tensor.Elements(s.Start, maxStateBytes/size)
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt32/max(each*size, 1) {
		return nil, fmt.Errorf("%d items of %v are too large", n, tensor.Dims(s.Start))
	}
	if s.First == nil {
		return make([]byte, n*each*size), nil
	}
	return slices.Repeat(s.First, int(n)), nil
}

// state reads how a state is configured: its input in the model file, and the output given that it comes from.
func (m *Model) state(r *Repository, c *pb.ModelSequenceBatching_State, in, given *tensor.Spec) (*State, error) {
	if in.DType != given.DType || !fits(in.Shape, given.Shape) || len(in.Shape) == 0 {
		return nil, fmt.Errorf("input is %s %v, output %s %v: they must be the same, with a dimension at least",
			in.DType, tensor.Dims(in.Shape), given.DType, tensor.Dims(given.Shape))
	}
	s := &State{Input: in.Name, Output: given.Name, DType: in.DType, Shape: in.Shape, Start: slices.Clone(in.Shape)}
	if m.MaxBatch > 0 {
		s.Start = s.Start[1:]
	}
	// Where the file leaves a dimension open, the configuration may say it; what is open then begins with one.
	start := func(dims []int64, of string) error {
		if len(dims) == 0 {
			return nil
		}
		if !fits(dims, s.Start) {
			return fmt.Errorf("%s: dims are %v, and the model file has %v for an item", of, tensor.Dims(dims),
				tensor.Dims(s.Start))
		}
		for k, d := range dims {
			if s.Start[k] < 0 {
				s.Start[k] = d
			}
		}
		return nil
	}
	if len(c.InitialState) > 1 {
		return nil, fmt.Errorf("has %d of initial_state, want one at most", len(c.InitialState))
	}
	if len(c.InitialState) == 1 {
		if err := start(c.InitialState[0].Dims, "initial_state"); err != nil {
			return nil, err
		}
	}
	if err := start(c.Dims, "state"); err != nil {
		return nil, err
	}
	for k, d := range s.Start {
		if d < 0 {
			s.Start[k] = 1
		}
	}
	s.Shown = slices.ContainsFunc(m.Config.Output, func(o *pb.ModelOutput) bool { return o.Name == s.Output })
	if len(c.InitialState) == 1 && c.InitialState[0].GetDataFile() != "" {
		if err := s.read(r, m.Name, c.InitialState[0].GetDataFile()); err != nil {
			return nil, fmt.Errorf("initial_state.data_file: %w", err)
		}
	}
	_, err := s.Begin(1)
	return s, err
}

// read takes the item at the start of a sequence from a file.
func (s *State) read(r *Repository, model, name string) error {
	data, err := r.ReadFile(path.Join(model, initialStates, path.Clean("/"+name)), maxStateBytes)
	if err != nil {
		return err
	}
	t := tensor.Tensor{Name: s.Input, DType: s.DType, Shape: s.Start, Data: data}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.First = data
	return nil
}
