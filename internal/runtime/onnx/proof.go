//go:build cgo

package onnx

import (
	"bytes"
	"context"
	"encoding/binary"
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
// numbers apart by a thousandth of the largest at most, and all else equal.
func alike(a, b *tensor.Tensor) bool {
	if !slices.Equal(a.Shape, b.Shape) || len(a.Data) != len(b.Data) {
		return false
	}
	if a.DType != tensor.FP32 && a.DType != tensor.FP64 {
		return bytes.Equal(a.Data, b.Data)
	}
	largest, apart := 0.0, 0.0
	for at := 0; at < len(a.Data); at += a.DType.Size() {
		x, y := number(a, at), number(b, at)
		largest = max(largest, math.Abs(x), math.Abs(y))
		if x != y {
			apart = max(apart, math.Abs(x-y))
		}
	}
	return apart <= largest/1000 // not so for what is no number
}

// number is the element of floating point at an offset of a tensor's bytes.
func number(t *tensor.Tensor, at int) float64 {
	if t.DType == tensor.FP32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[at:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(t.Data[at:]))
}
