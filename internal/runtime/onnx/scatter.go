//go:build cgo

package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// scatter gives every part its rows of the outputs. Rows are slices of the batch's memory. Nothing is copied but
// outputs that are inputs, whose memory is the callers', and what is cut back to a part's length.
func (s *session) scatter(c *selection, parts []dataplane.Portion, items int) error {
	n := len(c.outputs)
	all := make([]tensor.Tensor, n*len(parts))
	for i := range parts {
		parts[i].Outputs = all[i*n : (i+1)*n : (i+1)*n]
	}
	for at, k := range c.outputs {
		if from := s.m.outputs[k].input; from >= 0 {
			for i := range parts {
				t := *input(&parts[i], from, s.m.outputs[k].Name)
				t.Shape, t.Data = slices.Clone(t.Shape), bytes.Clone(t.Data)
				parts[i].Outputs[at] = t
			}
			continue
		}
		if err := s.split(k, at, parts, items); err != nil {
			for i := range parts {
				parts[i].Outputs = nil
			}
			return err
		}
	}
	return nil
}

// split gives every part its rows of output k, as the one at a place among its outputs.
func (s *session) split(k, to int, parts []dataplane.Portion, items int) error {
	p := &s.m.outputs[k]
	shape := []int64(s.outs[k].GetShape())
	if s.m.batched && (len(shape) == 0 || shape[0] != int64(items)) {
		return notBatched(p.Name, shape, items)
	}
	data, text, err := s.contents(k)
	if err != nil {
		return fmt.Errorf("output %q: %w", p.Name, err)
	}
	whole := tensor.Tensor{Name: p.Name, DType: p.DType, Shape: shape, Data: data}
	if len(parts) == 1 {
		if p.DType == tensor.Bytes {
			whole.Data = blockOf(text)
		}
		parts[0].Outputs[to] = whole
		return nil
	}
	axes, err := s.cuts(k, parts, shape)
	if err != nil {
		return err
	}
	shapes := make([]int64, len(parts)*len(shape))
	row, line := len(data)/items, len(text)/items
	at := 0
	for i := range parts {
		rows := parts[i].Items
		t := whole
		t.Shape = shapes[i*len(shape) : (i+1)*len(shape) : (i+1)*len(shape)]
		copy(t.Shape, shape)
		t.Shape[0] = int64(rows)
		if p.DType == tensor.Bytes {
			t.Data = blockOf(text[at*line : (at+rows)*line])
		} else {
			t.Data = data[at*row : (at+rows)*row : (at+rows)*row]
		}
		if len(axes) > 0 {
			cut(&t, axes, s.m.lengthIn(&parts[i]))
		}
		parts[i].Outputs[to] = t
		at += rows
	}
	return nil
}

// contents returns the content of output k: bytes, or elements when it is BYTES. It is in Go memory and stays valid
// after the run.
func (s *session) contents(k int) ([]byte, []string, error) {
	if s.data[k] != nil {
		return s.data[k], nil, nil
	}
	if got := fromORT(ort.TensorElementDataType(s.outs[k].DataType())); got != s.m.outputs[k].DType {
		return nil, nil, fmt.Errorf("the model gave %s, its file says %s", got, s.m.outputs[k].DType)
	}
	switch v := s.outs[k].(type) {
	case *shaped: // without elements: others have their memory in data
		return nil, nil, nil
	case *ort.StringTensor:
		shape := v.GetShape()
		if slices.Contains(shape, 0) {
			return nil, nil, nil
		}
		if len(shape) == 0 { // which the binding takes for no element
			one, err := v.GetElement(0)
			return nil, []string{one}, err
		}
		text, err := v.GetContents()
		return nil, text, err
	case *ort.Tensor[bool]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[uint8]:
		return v.GetData(), nil, nil
	case *ort.Tensor[uint16]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[uint32]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[uint64]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[int8]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[int16]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[int32]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[int64]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[float32]:
		return bytesOf(v.GetData()), nil, nil
	case *ort.Tensor[float64]:
		return bytesOf(v.GetData()), nil, nil
	}
	return nil, nil, fmt.Errorf("the model gave a %s, which cannot be served", s.outs[k].GetONNXType())
}

// bytesOf views elements as bytes. ONNX Runtime is built for little-endian machines only, and the protocol is
// little-endian, too.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}
