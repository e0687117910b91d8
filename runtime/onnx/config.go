package onnx

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config says which models there are and how to run them.
type Config struct {
	// Library is the path of the ONNX Runtime library; empty means the one that runtime/native finds. All backends of a
	// process share the library of the first.
	Library string
	// Models has an entry for every variant that will be launched.
	Models map[serving.VariantID]Model
	// Provider is the execution provider: "" or "cpu", or "cuda" when the library was built with it.
	Provider string
	// CUDADevice says which GPU a worker's instances use; nil means device 0.
	CUDADevice func(serving.WorkerID) int
	// Spin lets idle threads of a session burn their core while they wait for work: quicker on a machine that serves
	// one model, harmful when instances share cores.
	Spin bool
}

// Model is one model file.
type Model struct {
	Path string
	// Inputs and Outputs replace what the file says of the tensors with the same names: a dimension that the file
	// leaves open can be fixed. Tensors not named here stay as the file has them.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// NoBatch says that the first dimension of the inputs is not a batch dimension, even though the file leaves it
	// open.
	NoBatch bool
	// AsIs runs the graph as it lies in the file, without any optimisation by the runtime: what Backend.Optimize wrote
	// is optimised already.
	AsIs bool
	// Example returns inputs of so many items for warming the model up. Nil means zeros, with 1 for every open
	// dimension.
	Example func(items int) []tensor.Tensor
}
