package onnxmodel

import "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"

// DType is an element type, numbered as ONNX numbers it.
type DType int32

// The element types that the Open Inference Protocol can carry.
const (
	Float32  = DType(pb.TensorProto_FLOAT)
	Uint8    = DType(pb.TensorProto_UINT8)
	Int8     = DType(pb.TensorProto_INT8)
	Uint16   = DType(pb.TensorProto_UINT16)
	Int16    = DType(pb.TensorProto_INT16)
	Int32    = DType(pb.TensorProto_INT32)
	Int64    = DType(pb.TensorProto_INT64)
	String   = DType(pb.TensorProto_STRING)
	Bool     = DType(pb.TensorProto_BOOL)
	Float16  = DType(pb.TensorProto_FLOAT16)
	Float64  = DType(pb.TensorProto_DOUBLE)
	Uint32   = DType(pb.TensorProto_UINT32)
	Uint64   = DType(pb.TensorProto_UINT64)
	BFloat16 = DType(pb.TensorProto_BFLOAT16)
)

// DTypes lists every element type that the Open Inference Protocol can carry, in the protocol's order.
func DTypes() []DType {
	return []DType{
		Bool, Uint8, Uint16, Uint32, Uint64, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, String,
	}
}

type dtypeInfo struct {
	name string
	size int
}

var dtypes = map[DType]dtypeInfo{
	Bool: {"BOOL", 1}, Uint8: {"UINT8", 1}, Uint16: {"UINT16", 2}, Uint32: {"UINT32", 4}, Uint64: {"UINT64", 8},
	Int8: {"INT8", 1}, Int16: {"INT16", 2}, Int32: {"INT32", 4}, Int64: {"INT64", 8},
	Float16: {"FP16", 2}, BFloat16: {"BF16", 2}, Float32: {"FP32", 4}, Float64: {"FP64", 8}, String: {"BYTES", 0},
}

// String returns the name the Open Inference Protocol has for the type (FP32, BYTES, ...), or INVALID when the protocol
// cannot carry it.
func (d DType) String() string {
	if info, ok := dtypes[d]; ok {
		return info.name
	}
	return "INVALID"
}

// Size returns the bytes of one element, or 0 for String, whose elements vary, and for types the protocol cannot carry.
func (d DType) Size() int { return dtypes[d].size }

// ParseDType returns the type with the protocol's name, and whether there is one.
func ParseDType(name string) (DType, bool) {
	for d, info := range dtypes {
		if info.name == name {
			return d, true
		}
	}
	return 0, false
}
