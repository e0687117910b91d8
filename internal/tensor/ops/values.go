package ops

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

var (
	floats   = []tensor.DType{tensor.FP32}
	integers = []tensor.DType{tensor.Int64, tensor.Int32}
	pixels   = []tensor.DType{tensor.Uint8, tensor.FP32}
)

// float returns element i of an FP32 tensor's data.
func float(data []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}

func putFloat(data []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
}

// integer returns element i of an INT64 or INT32 tensor.
func integer(t *tensor.Tensor, i int) int64 {
	if t.DType == tensor.Int32 {
		return int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
	}
	return int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
}

// int64s makes an INT64 tensor.
func int64s(values []int64, shape ...int64) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.Int64, Shape: shape, Data: make([]byte, 0, 8*len(values))}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return t
}

// float32s makes an FP32 tensor.
func float32s(values []float32, shape ...int64) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.FP32, Shape: shape, Data: make([]byte, 0, 4*len(values))}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// zeros makes a tensor of zeros, of at most maxElements.
func zeros(d tensor.DType, shape ...int64) (tensor.Tensor, error) {
	n, err := tensor.Elements(shape, maxElements)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("the output would be too large: %w", err)
	}
	return tensor.Tensor{DType: d, Shape: shape, Data: make([]byte, n*int64(d.Size()))}, nil
}

// count returns the product of dimensions. The tensor must be validated, so that it cannot overflow.
func count(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

// checkEqual returns an error if two dimensions differ; -1 is not known and equals all.
func checkEqual(what string, got, wanted int64) error {
	if got >= 0 && wanted >= 0 && got != wanted {
		return fmt.Errorf("%s is %d, want %d", what, got, wanted)
	}
	return nil
}
