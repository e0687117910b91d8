package ops

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// What identity does with the batch dimension.
const (
	batchKeep = "keep"
	batchAdd  = "add"
	batchDrop = "drop"
)

var identityKind = kind{
	name: "identity", doc: "gives the tensor that it takes, under another name where outputs of the stage says so.",
	inputs:  []Port{{Name: "tensor", Doc: "any tensor; of one row with `batch: drop`"}},
	outputs: []Port{{Name: "tensor", Doc: "the same elements"}},
	options: []Option{
		{
			Name: "batch", Default: batchKeep,
			Doc: "`add` puts a first dimension of 1 before the others, `drop` takes a first dimension of 1 away",
		},
	},
	build: func(s *settings) body { return &identity{s.oneOf("batch", batchKeep, batchAdd, batchDrop)} },
}

type identity struct{ batch string }

func (f *identity) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	from := in[0].Shape
	if from == nil {
		return []tensor.Spec{{DType: in[0].DType}}, nil
	}
	if f.batch == batchDrop && len(from) > 0 && from[0] == -1 { // rows are counted when they come
		return []tensor.Spec{{DType: in[0].DType, Shape: slices.Clone(from[1:])}}, nil
	}
	to, err := f.shaped(from)
	return []tensor.Spec{{DType: in[0].DType, Shape: to}}, err
}

func (f *identity) shaped(from []int64) ([]int64, error) {
	switch {
	case f.batch == batchAdd:
		return append([]int64{1}, from...), nil
	case f.batch == batchDrop && (len(from) == 0 || from[0] != 1):
		return nil, fmt.Errorf("tensor has shape %v: only a first dimension of 1 can be dropped", tensor.Dims(from))
	case f.batch == batchDrop:
		return slices.Clone(from[1:]), nil
	}
	return slices.Clone(from), nil
}

func (f *identity) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	to, err := f.shaped(in[0].Shape)
	if err != nil {
		return nil, nil, err
	}
	return []tensor.Tensor{{DType: in[0].DType, Shape: to, Data: bytes.Clone(in[0].Data)}}, nil, nil
}
