package oip

import (
	"encoding/binary"
	"math"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// encodeTyped puts outputs into an answer as typed contents, as other servers do.
func encodeTyped(to *pb.ModelInferResponse, outputs []tensor.Tensor) {
	for k := range outputs {
		t := &outputs[k]
		to.Outputs = append(to.Outputs, &pb.ModelInferResponse_InferOutputTensor{
			Name: t.Name, Datatype: t.DType.String(), Shape: t.Shape, Contents: unpackContents(t),
		})
	}
}

// unpackContents is the inverse of packContents; nil for the types that have no typed contents.
func unpackContents(t *tensor.Tensor) *pb.InferTensorContents {
	c := &pb.InferTensorContents{}
	le := binary.LittleEndian
	d := t.Data
	switch t.DType {
	case tensor.Bool:
		for _, b := range d {
			c.BoolContents = append(c.BoolContents, b != 0)
		}
	case tensor.Int8:
		for _, b := range d {
			c.IntContents = append(c.IntContents, int32(int8(b)))
		}
	case tensor.Int16:
		for ; len(d) >= 2; d = d[2:] {
			c.IntContents = append(c.IntContents, int32(int16(le.Uint16(d))))
		}
	case tensor.Int32:
		for ; len(d) >= 4; d = d[4:] {
			c.IntContents = append(c.IntContents, int32(le.Uint32(d)))
		}
	case tensor.Int64:
		for ; len(d) >= 8; d = d[8:] {
			c.Int64Contents = append(c.Int64Contents, int64(le.Uint64(d)))
		}
	case tensor.Uint8:
		for _, b := range d {
			c.UintContents = append(c.UintContents, uint32(b))
		}
	case tensor.Uint16:
		for ; len(d) >= 2; d = d[2:] {
			c.UintContents = append(c.UintContents, uint32(le.Uint16(d)))
		}
	case tensor.Uint32:
		for ; len(d) >= 4; d = d[4:] {
			c.UintContents = append(c.UintContents, le.Uint32(d))
		}
	case tensor.Uint64:
		for ; len(d) >= 8; d = d[8:] {
			c.Uint64Contents = append(c.Uint64Contents, le.Uint64(d))
		}
	case tensor.FP32:
		for ; len(d) >= 4; d = d[4:] {
			c.Fp32Contents = append(c.Fp32Contents, math.Float32frombits(le.Uint32(d)))
		}
	case tensor.FP64:
		for ; len(d) >= 8; d = d[8:] {
			c.Fp64Contents = append(c.Fp64Contents, math.Float64frombits(le.Uint64(d)))
		}
	case tensor.Bytes:
		_ = tensor.EachBytes(d, func(e []byte) { c.BytesContents = append(c.BytesContents, e) })
	default:
		return nil
	}
	return c
}
