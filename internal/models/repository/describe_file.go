package repository

import (
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// Described is the description of a model by its ONNX file alone.
type Described struct {
	Inputs, Outputs []tensor.Spec
	Batched         bool // the first dimension of every tensor is variable, and counts items
}

// Describe reads an ONNX file from an untrusted source. It refuses a model that keeps tensors in other files, because
// it could name any file of the machine.
func Describe(path string) (*Described, error) {
	info, err := onnxmodel.Read(path)
	if err != nil {
		return nil, err
	}
	outside, err := onnxmodel.External(path)
	if err != nil {
		return nil, err
	}
	if outside {
		return nil, errors.New("the model keeps tensors in other files: export it with its weights in one file")
	}
	d := &Described{}
	if d.Inputs, err = specs("input", info.Inputs); err != nil {
		return nil, err
	}
	if d.Outputs, err = specs("output", info.Outputs); err != nil {
		return nil, err
	}
	if len(d.Inputs) == 0 {
		return nil, errors.New("the graph has no inputs")
	}
	d.Batched = !slices.ContainsFunc(slices.Concat(d.Inputs, d.Outputs), func(s tensor.Spec) bool {
		return len(s.Shape) == 0 || s.Shape[0] != -1
	})
	return d, nil
}
