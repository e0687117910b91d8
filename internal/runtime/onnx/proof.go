//go:build cgo

package onnx

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// prove runs the part of a padded batch that has the most padding alone, and compares its answers. The name of an input
// says little, and a model may read its mask at some places only.
func (s *session) prove(ctx context.Context, padded *dataplane.Portion) error {
	alone := []dataplane.Portion{*padded}
	alone[0].Outputs = nil
	if err := s.run(ctx, alone, padded.Items); err != nil {
		return err
	}
	for k := range padded.Outputs {
		if !alike(&padded.Outputs[k], &alone[0].Outputs[k]) {
			return fmt.Errorf("output %q: %w", padded.Outputs[k].Name, errPadded)
		}
	}
	s.m.padding.proved.Store(true)
	return nil
}

// alike reports whether two answers are the same but for rounding, which kernels for other sizes of matrices bring:
// every number is apart by a thousandth of itself at most, or of the median where it is near 0, and all else is equal.
// The largest says nothing of the others: scores that are masked are -10000 or less.
func alike(a, b *tensor.Tensor) bool {
	if !slices.Equal(a.Shape, b.Shape) || len(a.Data) != len(b.Data) {
		return false
	}
	if a.DType != tensor.FP32 && a.DType != tensor.FP64 {
		return bytes.Equal(a.Data, b.Data)
	}
	sizes := make([]float64, 0, len(a.Data)/a.DType.Size())
	for at := 0; at < len(a.Data); at += a.DType.Size() {
		sizes = append(sizes, math.Abs(a.DType.Number(a.Data[at:])))
	}
	slices.Sort(sizes)
	for at := 0; at < len(a.Data); at += a.DType.Size() {
		x, y := a.DType.Number(a.Data[at:]), a.DType.Number(b.Data[at:])
		near := max(math.Abs(x), math.Abs(y), sizes[len(sizes)/2])
		if x != y && !(math.Abs(x-y) <= near/1000 && !math.IsInf(near, 0)) { // not so for what is no number
			return false
		}
	}
	return true
}
