//go:build cgo

package onnx

import (
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// gatherText joins the parts' strings. ONNX Runtime stores strings in its own memory, so they are always copied.
func (s *session) gatherText(k int, parts []dataplane.Portion, first *tensor.Tensor, items int) (ort.Value, error) {
	shape := first.Shape
	if len(parts) > 1 {
		shape = slices.Clone(shape)
		shape[0] = int64(items)
	}
	v, err := newStrings(shape)
	if err != nil {
		return nil, err
	}
	s.temp = append(s.temp, v)
	at := 0
	for i := range parts {
		if at, err = fillStrings(v, at, input(&parts[i], k, s.m.inputs[k].Name).Data); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func newStrings(shape []int64) (ort.Value, error) {
	if len(shape) == 0 {
		return scalarText()
	}
	return ort.NewStringTensor(shape)
}

// blockOf returns elements as one BYTES block.
func blockOf(elements []string) []byte {
	n := 0
	for _, e := range elements {
		n += 4 + len(e)
	}
	block := make([]byte, 0, n)
	for _, e := range elements {
		block = tensor.AppendBytes(block, []byte(e))
	}
	return block
}
