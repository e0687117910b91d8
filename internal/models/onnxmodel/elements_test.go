package onnxmodel

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

func TestElements(t *testing.T) {
	for name, c := range map[string]struct {
		is   *pb.TensorProto
		want []byte
		err  string
	}{
		"bytes":   {&pb.TensorProto{DataType: int32(Int16), Dims: []int64{1}, RawData: []byte{1, 2}}, []byte{1, 2}, ""},
		"floats":  {&pb.TensorProto{DataType: int32(Float32), FloatData: []float32{1}}, []byte{0, 0, 0x80, 0x3f}, ""},
		"doubles": {&pb.TensorProto{DataType: int32(Float64), DoubleData: []float64{1}}, []byte{6: 0xf0, 7: 0x3f}, ""},
		"negative": {
			&pb.TensorProto{DataType: int32(Int8), Dims: []int64{2}, Int32Data: []int32{-1, 2}}, []byte{0xff, 2}, "",
		},
		"half":     {&pb.TensorProto{DataType: int32(Float16), Int32Data: []int32{0x3c00}}, []byte{0, 0x3c}, ""},
		"unsigned": {&pb.TensorProto{DataType: int32(Uint32), Uint64Data: []uint64{3}}, []byte{3, 0, 0, 0}, ""},
		"whole": {
			&pb.TensorProto{DataType: int32(Int64), Int64Data: []int64{-2}},
			[]byte("\xfe\xff\xff\xff\xff\xff\xff\xff"), "",
		},
		"texts": {
			&pb.TensorProto{DataType: int32(String), Dims: []int64{2}, StringData: [][]byte{[]byte("a"), nil}},
			[]byte{1, 0, 0, 0, 'a', 0, 0, 0, 0}, "",
		},
		"none": {&pb.TensorProto{DataType: int32(Float32), Dims: []int64{0}}, nil, ""},
		"too few": {
			&pb.TensorProto{DataType: int32(Int64), Dims: []int64{2}, Int64Data: []int64{1}}, nil, "needs 16 bytes",
		},
		"few text": {&pb.TensorProto{DataType: int32(String), Dims: []int64{2}}, nil, "2 strings, got 0"},
		"outside":  {&pb.TensorProto{DataLocation: pb.TensorProto_EXTERNAL}, nil, "in another file"},
		"complex":  {&pb.TensorProto{DataType: int32(pb.TensorProto_COMPLEX64)}, nil, "type COMPLEX64"},
	} {
		got, err := Elements(c.is)
		if c.err == "" && (err != nil || !bytes.Equal(got, c.want)) ||
			c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, c.want, c.err)
		}
	}
}
