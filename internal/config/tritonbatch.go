package config

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// batches tells whether the model has a batch dimension.
func (m *member) batches() bool {
	if m.local {
		return m.MaxBatch > 0
	}
	return m.Config.GetMaxBatchSize() > 0
}

// rank is the number of dimensions of an input or output of the model, with that of the batch; -1 where it is not
// known.
func (m *member) rank(name string) int {
	if m.local {
		for _, list := range [][]tensor.Spec{m.Inputs, m.Outputs} {
			if s := pipeline.Find(list, name); s != nil && s.Shape != nil {
				return len(s.Shape)
			}
		}
		return -1
	}
	in, out := interfaceOf(m.Config)
	for _, t := range append(in, out...) {
		if t.Name == name {
			return len(t.Shape)
		}
	}
	return -1
}

// mixed tells whether an ensemble's queries have to go from step to step as a whole: some of its steps batch and others
// do not, or some tensors of its requests have a batch dimension for the steps that take them and others have none.
func (im *importer) mixed(a *App, c *pb.ModelConfig, steps []*pb.ModelEnsembling_Step) bool {
	batch, single := c.GetMaxBatchSize() > 0, false
	kept, added := false, false
	for _, s := range steps {
		m := im.members[s.ModelName]
		if !m.batches() {
			single = true
			continue
		}
		batch = true
		for port, name := range s.InputMap {
			k := slices.IndexFunc(a.Inputs, func(t Tensor) bool { return t.Name == name })
			if k < 0 {
				continue
			}
			have, want := len(a.Inputs[k].Shape), m.rank(port)
			kept, added = kept || have == want, added || have+1 == want
		}
	}
	return batch && single || kept && added
}

// rebatches tells whether an input of the ensemble has no batch dimension where its only step has one, or the other way
// round.
func (im *importer) rebatches(a *App, s *pb.ModelEnsembling_Step) bool {
	for port, name := range s.InputMap {
		k := slices.IndexFunc(a.Inputs, func(t Tensor) bool { return t.Name == name })
		if want := im.members[s.ModelName].rank(port); k >= 0 && want >= 0 && want != len(a.Inputs[k].Shape) {
			return true
		}
	}
	return false
}

// answering returns what becomes of the batch dimension of a step's output on its way into the answer, as the function
// that passes it on has it; "" where it stays. batch tells whether the ensemble has a batch dimension.
func (m *member) answering(port string, want Tensor, batch bool) (string, error) {
	have := m.rank(port)
	switch d := len(want.Shape); {
	case have < 0 || have == d:
		return "", nil
	case have == d+1 && m.batches() && !batch:
		return "drop", nil
	case have == d-1 && !m.batches() && batch:
		return "add", nil
	}
	return "", fmt.Errorf("tensor %q has %d dimensions in the ensemble, and %d as %q of model %q, both with that of "+
		"the batch: write the dims that the model has", want.Name, len(want.Shape), have, port, m.Name)
}

// alone lets the queries of a step wait for no others: each is a batch of its own.
func (s *Stage) alone() {
	if s.Queue == nil {
		return
	}
	q := *s.Queue
	q.Delay, q.Preferred = 0, nil
	if s.Queue = &q; len(q.Levels) == 0 {
		s.Queue = nil
	}
}
