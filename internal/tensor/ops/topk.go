package ops

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// maxTop bounds the option k.
const maxTop = 100_000

var topkKind = kind{
	name: "topk",
	doc: "finds the largest values of the last dimension, largest first; of equal ones the first, and numbers " +
		"that are none last.",
	inputs: []Port{{Name: "scores", DTypes: floats, Ranks: []int{2, 3, 4, 5, 6, 7, 8}, Doc: "[n, ..., c]"}},
	outputs: []Port{
		{Name: "values", Doc: "[n, ..., k] FP32"},
		{Name: "indices", Doc: "[n, ..., k] INT64: where they stood in the last dimension"},
	},
	options: []Option{{Name: "k", Required: true, Doc: "how many to find"}},
	build:   func(s *settings) body { return &topk{s.whole("k", 1, maxTop)} },
}

type topk struct{ k int }

func (f *topk) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	shape := slices.Clone(in[0].Shape)
	if shape != nil {
		last := len(shape) - 1
		if shape[last] >= 0 && shape[last] < int64(f.k) {
			return nil, f.tooFew(shape[last])
		}
		shape[last] = int64(f.k)
	}
	return []tensor.Spec{{DType: tensor.FP32, Shape: shape}, {DType: tensor.Int64, Shape: slices.Clone(shape)}}, nil
}

func (f *topk) tooFew(have int64) error {
	return fmt.Errorf("the %d largest of %d scores do not exist: lower k", f.k, have)
}

func (f *topk) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	shape := slices.Clone(in[0].Shape)
	last := len(shape) - 1
	c := int(shape[last])
	if c < f.k {
		return nil, nil, f.tooFew(int64(c))
	}
	rows := count(shape[:last])
	shape[last] = int64(f.k)
	if _, err := tensor.Elements(shape, maxElements); err != nil {
		return nil, nil, fmt.Errorf("the output would be too large: %w", err)
	}
	values, indices := make([]float32, 0, rows*f.k), make([]int64, 0, rows*f.k)
	order := make([]int, c)
	for r := range rows {
		for i := range order {
			order[i] = i
		}
		row := in[0].Data[4*r*c:]
		largest(order, f.k, func(i int) float32 { return float(row, i) })
		for _, i := range order[:f.k] {
			values, indices = append(values, float(row, i)), append(indices, int64(i))
		}
	}
	return []tensor.Tensor{float32s(values, shape...), int64s(indices, slices.Clone(shape)...)}, nil, nil
}
