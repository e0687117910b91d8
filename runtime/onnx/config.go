package onnx

import (
	"github.com/sluice-serving/sluice/models/repository"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config lists the models and says how to run them.
type Config struct {
	// Library is the path of the ONNX Runtime library; empty means the one that runtime/native finds. All backends of a
	// process share the library of the first.
	Library string
	// Models has an entry for every variant that will be launched.
	Models map[serving.VariantID]Model
	// Provider is the execution provider: "" or "cpu", or "cuda" when the library was built with it.
	Provider string
	// CUDADevice returns the GPU of a worker's instances, from 0; nil means device 0.
	CUDADevice func(serving.WorkerID) int
	// Spin lets idle threads of a session poll for work. That is faster on a machine that serves one model, and harmful
	// when instances share cores.
	Spin bool
}

// Model is one model file.
type Model struct {
	Path string
	// Inputs and Outputs replace the file's descriptions of the tensors with the same names: a variable dimension of
	// the file can be fixed. Other tensors stay as in the file.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// NoBatch says that the first dimension of the inputs is not a batch dimension, although it is variable in the
	// file.
	NoBatch bool
	// AsIs runs the graph as it is in the file, without optimisation by the runtime. It is for files that
	// Backend.Optimize wrote.
	AsIs bool
	// Reshapes are tensors that clients see in another shape than the model has, by name: Own is the model's shape,
	// Seen the clients', both with the batch dimension.
	Reshapes map[string]Reshape
	// Sequence says which inputs follow from the sequence of a query; nil for none. Such a model runs at a stateful
	// stage.
	Sequence *repository.Sequence
	// Example returns inputs of so many items for warming the model up. Nil means zeros, with 1 for every variable
	// dimension.
	Example func(items int) []tensor.Tensor
}

// Reshape is a tensor's shape as the model has it and as clients see it.
type Reshape struct{ Own, Seen []int64 }
