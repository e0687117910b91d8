//go:build cgo

package onnx

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// cuts returns the dimensions in which output k of a run is cut back to the length of each part.
func (s *session) cuts(k int, parts []dataplane.Portion, shape []int64) ([]int, error) {
	if !s.m.padded(parts) {
		return nil, nil
	}
	axes, longest := s.m.padding.outputs[k], s.m.lengthIn(&parts[0])
	other := func(d int) bool { return shape[d] != longest }
	if !tensor.Fits(shape, s.m.outputs[k].Shape) || slices.ContainsFunc(axes, other) {
		return nil, fmt.Errorf("output %q: %w: it has the shape %v", s.m.outputs[k].Name, errPadded, tensor.Dims(shape))
	}
	return axes, nil
}

// cut returns the first n of some dimensions of a tensor. The shape is changed, the elements are copied.
func cut(t *tensor.Tensor, axes []int, n int64) {
	whole := slices.Clone(t.Shape)
	size := len(t.Data)
	for _, d := range axes {
		if whole[d] > 0 {
			size = size / int(whole[d]) * int(n)
		}
		t.Shape[d] = n
	}
	from := t.Data
	t.Data = make([]byte, size)
	if size > 0 {
		copyCommon(t.Data, t.Shape, from, whole)
	}
}

// copyCommon copies what two tensors have in common from their first element on. Each has the bytes of its shape.
func copyCommon(to []byte, toShape []int64, from []byte, fromShape []int64) {
	if slices.Equal(toShape[1:], fromShape[1:]) {
		copy(to, from)
		return
	}
	n := min(toShape[0], fromShape[0])
	if n == 0 {
		return
	}
	a, b := int64(len(to))/toShape[0], int64(len(from))/fromShape[0]
	for i := range n {
		copyCommon(to[i*a:(i+1)*a], toShape[1:], from[i*b:(i+1)*b], fromShape[1:])
	}
}
