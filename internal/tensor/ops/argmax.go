package ops

import (
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

var argmaxKind = kind{
	name: "argmax",
	doc: "finds the largest value of the last dimension; of equal ones the first, and a number that is none only " +
		"where there is nothing else.",
	inputs: []Port{{Name: "scores", DTypes: floats, Ranks: []int{2, 3, 4, 5, 6, 7, 8}, Doc: "[n, ..., c]"}},
	outputs: []Port{
		{Name: "indices", Doc: "[n, ...] INT64: where it stands in the last dimension"},
		{Name: "values", Doc: "[n, ...] FP32"},
	},
	build: func(*settings) body { return argmax{} },
}

type argmax struct{}

var errNothingToChoose = errors.New("the last dimension of scores is 0: there is nothing to choose from")

func (argmax) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	var shape []int64
	if s := in[0].Shape; s != nil {
		if s[len(s)-1] == 0 {
			return nil, errNothingToChoose
		}
		shape = slices.Clone(s[:len(s)-1])
	}
	return []tensor.Spec{{DType: tensor.Int64, Shape: shape}, {DType: tensor.FP32, Shape: slices.Clone(shape)}}, nil
}

func (argmax) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	last := len(in[0].Shape) - 1
	shape, c := slices.Clone(in[0].Shape[:last]), int(in[0].Shape[last])
	if c == 0 {
		return nil, nil, errNothingToChoose
	}
	rows := count(shape)
	indices, values := make([]int64, rows), make([]float32, rows)
	for r := range rows {
		row, best := in[0].Data[4*r*c:], 0
		for i := 1; i < c; i++ {
			if better(float(row, i), float(row, best), i, best) < 0 {
				best = i
			}
		}
		indices[r], values[r] = int64(best), float(row, best)
	}
	return []tensor.Tensor{int64s(indices, shape...), float32s(values, slices.Clone(shape)...)}, nil, nil
}
