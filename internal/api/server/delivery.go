package server

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// namesOf returns the names of the outputs that a client asks for; nil for all.
func namesOf(wanted []oip.RequestedOutput) []string {
	var names []string
	for k := range wanted {
		names = append(names, wanted[k].Name)
	}
	return names
}

// deliver gives a client's outputs, in its order, the form that it asks for: classes in place of values, in shared
// memory in place of in the answer. shared says by output which are there; nil for none. It does not change outputs.
// holds claims the memory of what is delivered, before any of it is written. names are those of wanted.
func (s *Server) deliver(m *Model, outputs []tensor.Tensor, wanted []oip.RequestedOutput, names []string,
	holds *memory.Claim) (out []tensor.Tensor, shared []*oip.Shared, err error) {
	if len(wanted) == 0 {
		return outputs, nil, holds.Answer(outputs)
	}
	if out, err = selectOutputs(m, outputs, names); err != nil {
		return nil, nil, err
	}
	if err := holds.Answer(out); err != nil {
		return nil, nil, err
	}
	for k := range wanted {
		w := &wanted[k]
		if w.Classes > 0 {
			if out[k], err = classified(m, &out[k], w.Classes); err != nil {
				return nil, nil, err
			}
			if err := holds.Answer(out[k : k+1]); err != nil {
				return nil, nil, err
			}
		}
		if w.Shared == nil {
			continue
		}
		if shared == nil {
			shared = make([]*oip.Shared, len(out))
		}
		if shared[k], err = s.regions.Write(*w.Shared, w.Name, out[k].Data); err != nil {
			return nil, nil, err
		}
	}
	return out, shared, nil
}

// wantOutputs has a query answered with the outputs that its client asks for, all where it names none. It returns an
// error, before anything runs, for one that the model does not have or that has nowhere to go, and for outputs that
// are known to be larger than one query's may be.
func (s *Server) wantOutputs(m *Model, q *dataplane.Request, wanted []oip.RequestedOutput) error {
	for k := range wanted {
		if wanted[k].Shared == nil {
			continue
		}
		if err := s.regions.Check(*wanted[k].Shared); err != nil {
			return err
		}
	}
	q.Outputs = namesOf(wanted)
	if err := checkOutputs(m, q.Outputs); err != nil {
		return err
	}
	if n := m.LeastOutput(q.Outputs, q.Items); n > s.config.Output {
		return oip.Errorf(oip.TooLarge, "outputs", "%v", &dataplane.TooLargeError{Bytes: n, Limit: s.config.Output})
	}
	return nil
}

// LeastOutput is how many bytes some outputs of a model have at least for a request of so many items: those whose size
// is known. No names stand for all outputs.
func (m *Model) LeastOutput(names []string, items int) (n int64) {
	for k := range m.Outputs {
		if s := &m.Outputs[k]; len(names) == 0 || slices.Contains(names, s.Name) {
			n += m.leastBytes(s, items)
		}
	}
	return n
}

// leastBytes is the size of an output, 0 where it is not known. The first dimension counts items where the model is not
// made of stages, which may find any number of things.
func (m *Model) leastBytes(s *tensor.Spec, items int) int64 {
	shape, n := s.Shape, int64(1)
	if m.Platform == OfONNX && m.Batched && !m.Whole && len(shape) > 0 && shape[0] < 0 {
		shape, n = shape[1:], int64(items)
	}
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/int64(16)/d {
			return 0
		}
		n *= d
	}
	if s.DType == tensor.Bytes {
		return 4 * n // the lengths
	}
	return n * int64(s.DType.Size())
}
