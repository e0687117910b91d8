package onnxmodel

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Tensor is a tensor of a file of its own, with its elements as the protocol has them.
type Tensor struct {
	Name  string // "" where the file does not say it
	DType DType
	Shape []int64
	Data  []byte
}

// ParseTensor reads a file with one tensor, as the ONNX standard has inputs beside its models.
func ParseTensor(file []byte) (*Tensor, error) {
	var t pb.TensorProto
	if err := proto.Unmarshal(file, &t); err != nil {
		return nil, fmt.Errorf("not a tensor of ONNX: %w", err)
	}
	data, err := Elements(&t)
	if err != nil {
		return nil, err
	}
	return &Tensor{Name: t.Name, DType: DType(t.DataType), Shape: t.Dims, Data: data}, nil
}
