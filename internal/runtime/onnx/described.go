package onnx

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/tensor"
)

// Described returns the file of a version of a model with what its repository says of the model.
func Described(path string, x *repository.Model) Model {
	m := Model{Path: path, NoBatch: x.MaxBatch == 0, Sequence: x.Sequence, Reshapes: make(map[string]Reshape),
		Shapes: make(map[string][]int64)}
	if x.Sample != nil {
		m.Example = func(items int) []tensor.Tensor { return x.Example(items) }
	}
	for _, t := range slices.Concat(x.Inputs, x.Outputs) {
		m.Shapes[t.Name] = t.Shape
		if own, ok := x.Reshapes[t.Name]; ok {
			m.Reshapes[t.Name], m.Shapes[t.Name] = Reshape{Own: own, Seen: t.Shape}, own
		}
	}
	return m
}
