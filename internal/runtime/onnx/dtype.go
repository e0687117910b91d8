//go:build cgo

package onnx

import (
	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/tensor"
)

var toORT = map[tensor.DType]ort.TensorElementDataType{
	tensor.Bool:   ort.TensorElementDataTypeBool,
	tensor.Uint8:  ort.TensorElementDataTypeUint8,
	tensor.Uint16: ort.TensorElementDataTypeUint16,
	tensor.Uint32: ort.TensorElementDataTypeUint32,
	tensor.Uint64: ort.TensorElementDataTypeUint64,
	tensor.Int8:   ort.TensorElementDataTypeInt8,
	tensor.Int16:  ort.TensorElementDataTypeInt16,
	tensor.Int32:  ort.TensorElementDataTypeInt32,
	tensor.Int64:  ort.TensorElementDataTypeInt64,
	tensor.FP16:   ort.TensorElementDataTypeFloat16,
	tensor.BF16:   ort.TensorElementDataTypeBFloat16,
	tensor.FP32:   ort.TensorElementDataTypeFloat,
	tensor.FP64:   ort.TensorElementDataTypeDouble,
	tensor.Bytes:  ort.TensorElementDataTypeString,
}

// fromORT returns the protocol's type for the runtime's, or Invalid when the protocol has none.
func fromORT(t ort.TensorElementDataType) tensor.DType {
	for d, o := range toORT {
		if o == t {
			return d
		}
	}
	return tensor.Invalid
}
