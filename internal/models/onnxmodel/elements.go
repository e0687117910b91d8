package onnxmodel

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Elements returns the elements of a constant as the protocol has them: little-endian, strings each behind its length.
// Files have them as bytes or as lists of numbers.
func Elements(t *pb.TensorProto) ([]byte, error) {
	d := DType(t.DataType)
	if t.DataLocation == pb.TensorProto_EXTERNAL {
		return nil, fmt.Errorf("constant %q is in another file", t.Name)
	}
	if _, ok := dtypes[d]; !ok {
		return nil, fmt.Errorf("constant %q is of type %s, which the protocol cannot carry", t.Name,
			elementName(t.DataType))
	}
	out := t.RawData
	if len(out) == 0 {
		out = listed(t, d)
	}
	if d == String {
		want := int64(1)
		for _, n := range t.Dims {
			want *= n
		}
		if got := int64(len(t.StringData)); got != want {
			return nil, fmt.Errorf("constant %q: shape %v has %d strings, got %d", t.Name, t.Dims, want, got)
		}
		return out, nil
	}
	if err := checkConstant(d, t.Dims, len(out)); err != nil {
		return nil, fmt.Errorf("constant %q: %w", t.Name, err)
	}
	return out, nil
}

// listed returns elements that a file has as a list, which differs with their type.
func listed(t *pb.TensorProto, d DType) (out []byte) {
	le := binary.LittleEndian
	for _, v := range t.StringData {
		out = append(le.AppendUint32(out, uint32(len(v))), v...)
	}
	for _, v := range t.FloatData {
		out = le.AppendUint32(out, math.Float32bits(v))
	}
	for _, v := range t.DoubleData {
		out = le.AppendUint64(out, math.Float64bits(v))
	}
	var numbers []uint64
	for _, v := range t.Int32Data { // all types of up to 32 bits but UINT32
		numbers = append(numbers, uint64(v))
	}
	for _, v := range t.Int64Data {
		numbers = append(numbers, uint64(v))
	}
	numbers = append(numbers, t.Uint64Data...) // UINT32 and UINT64
	for _, v := range numbers {
		out = append(out, le.AppendUint64(nil, v)[:d.Size()]...)
	}
	return out
}
