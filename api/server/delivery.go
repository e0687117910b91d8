package server

import (
	"github.com/sluice-serving/sluice/api/oip"
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
// holds claims the memory of what is delivered, before any of it is written.
func (s *Server) deliver(m *Model, outputs []tensor.Tensor, wanted []oip.RequestedOutput, holds *claim) (
	out []tensor.Tensor, shared []*oip.Shared, err error) {
	if len(wanted) == 0 {
		return outputs, nil, holds.answer(outputs)
	}
	if out, err = selectOutputs(m, outputs, namesOf(wanted)); err != nil {
		return nil, nil, err
	}
	if err := holds.answer(out); err != nil {
		return nil, nil, err
	}
	for k := range wanted {
		w := &wanted[k]
		if w.Classes > 0 {
			if out[k], err = classified(m, &out[k], w.Classes); err != nil {
				return nil, nil, err
			}
			if err := holds.answer(out[k : k+1]); err != nil {
				return nil, nil, err
			}
		}
		if w.Shared == nil {
			continue
		}
		if shared == nil {
			shared = make([]*oip.Shared, len(out))
		}
		if shared[k], err = s.regions.write(*w.Shared, w.Name, out[k].Data); err != nil {
			return nil, nil, err
		}
	}
	return out, shared, nil
}

// checkWanted returns an error, before anything runs, for an output that the model does not have or that has nowhere to
// go.
func (s *Server) checkWanted(m *Model, wanted []oip.RequestedOutput) error {
	for k := range wanted {
		if wanted[k].Shared == nil {
			continue
		}
		if err := s.regions.enabled(); err != nil {
			return err
		}
		s.regions.mu.RLock()
		_, _, err := s.regions.within(*wanted[k].Shared)
		s.regions.mu.RUnlock()
		if err != nil {
			return err
		}
	}
	return checkOutputs(m, namesOf(wanted))
}
