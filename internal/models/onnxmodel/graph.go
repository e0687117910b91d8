// Package onnxmodel writes ONNX model files through a small builder, and reads the inputs and outputs of any.
//
// The message types in onnxmodel/pb follow the public ONNX format (https://onnx.ai/onnx/repo-docs/IR.html).
package onnxmodel

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// The operator set and file format that Graph.Write uses. ONNX Runtime has read both since version 1.14.
const (
	DefaultOpset = 17
	DefaultIR    = 8
)

// Symbolic marks a dimension whose size is known only at run time. As the first dimension it is the batch size and is
// called N in the file; elsewhere its name is D and its index, such as D2.
const Symbolic = -1

// Graph collects inputs, constants, nodes and outputs. Its methods return the graph, so that calls can be chained. They
// report no errors: Check does, and Write calls it.
type Graph struct {
	g *pb.GraphProto
}

// NewGraph starts an empty graph. The name must not be empty.
func NewGraph(name string) *Graph { return &Graph{g: &pb.GraphProto{Name: name}} }

// Input declares an input. The dimensions are the whole shape, the batch dimension included; Symbolic ones are
// negative.
func (g *Graph) Input(name string, d DType, dims ...int64) *Graph {
	g.g.Input = append(g.g.Input, valueInfo(name, d, dims))
	return g
}

// Output declares that a node's output of this name is an output of the graph.
func (g *Graph) Output(name string, d DType, dims ...int64) *Graph {
	g.g.Output = append(g.g.Output, valueInfo(name, d, dims))
	return g
}

// Node applies an operator of the standard set. An empty input name leaves out an optional input.
func (g *Graph) Node(op string, inputs, outputs []string, attrs ...Attr) *Graph {
	name := fmt.Sprintf("%s_%d", op, len(g.g.Node))
	g.g.Node = append(g.g.Node, &pb.NodeProto{Name: name, OpType: op, Input: inputs, Output: outputs, Attribute: attrs})
	return g
}

// Initializer adds a constant of float32 elements in row-major order.
func (g *Graph) Initializer(name string, values []float32, dims ...int64) *Graph {
	raw := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return g.InitializerRaw(name, Float32, raw, dims...)
}

// InitializerInt64 adds a constant of int64 elements, such as the shapes and axes some operators take.
func (g *Graph) InitializerInt64(name string, values []int64, dims ...int64) *Graph {
	raw := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(v))
	}
	return g.InitializerRaw(name, Int64, raw, dims...)
}

// InitializerRaw adds a constant whose elements are given as little-endian bytes. It cannot hold strings.
func (g *Graph) InitializerRaw(name string, d DType, raw []byte, dims ...int64) *Graph {
	g.g.Initializer = append(g.g.Initializer, &pb.TensorProto{Name: name, DataType: int32(d), Dims: dims, RawData: raw})
	return g
}

// Model returns the graph as a model message. The message shares the graph's data.
func (g *Graph) Model(opset, ir int64) *pb.ModelProto {
	return &pb.ModelProto{
		IrVersion:    ir,
		ProducerName: "sluice",
		Graph:        g.g,
		OpsetImport:  []*pb.OperatorSetIdProto{{Version: opset}},
	}
}

// Parameters returns the number of elements in the float constants. For a model built here these are its weights.
func (g *Graph) Parameters() int64 {
	var n int64
	for _, t := range g.g.Initializer {
		if DType(t.DataType) == Float32 {
			n += int64(len(t.RawData) / 4)
		}
	}
	return n
}

func valueInfo(name string, d DType, dims []int64) *pb.ValueInfoProto {
	shape := &pb.TensorShapeProto{}
	for i, n := range dims {
		dim := &pb.TensorShapeProto_Dimension{}
		switch {
		case n >= 0:
			dim.Value = &pb.TensorShapeProto_Dimension_DimValue{DimValue: n}
		case i == 0:
			dim.Value = &pb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}
		default:
			dim.Value = &pb.TensorShapeProto_Dimension_DimParam{DimParam: fmt.Sprintf("D%d", i)}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	tensor := &pb.TypeProto_Tensor{ElemType: int32(d), Shape: shape}
	return &pb.ValueInfoProto{Name: name, Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{TensorType: tensor}}}
}
