package onnx

import (
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config lists the models and says how to run them.
type Config struct {
	// Library is the path of the ONNX Runtime library; empty means the one that internal/runtime/native finds. All
	// backends of a process share the library of the first.
	Library string
	// Models has an entry for every variant that will be launched.
	Models map[serving.VariantID]Model
	// Device returns where the instances of a worker run; nil runs all on the processor.
	Device func(serving.WorkerID) Device
	// Memory is what the outputs of a batch of several items may take, in bytes; 0 is no limit. A larger batch is
	// refused as one that the device lacks memory for, before the system ends the process.
	Memory int64
	// Spin lets idle threads of a session poll for work. That is faster on a machine that serves one model, and harmful
	// when instances share cores.
	Spin bool
	// Tell is told what the user is to know although no query fails; nil drops it.
	Tell func(error)
}

// Names of execution providers.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// Device is where instances run.
type Device struct {
	// Providers are execution providers in the order of preference, CPU and CUDA. The first that the library has and
	// that starts is used. Nil means CPU.
	Providers []string
	// Options are those of the CUDA provider, by the names of its documentation, such as gpu_mem_limit. device_id is
	// what Ordinal returns.
	Options map[string]string
	// Ordinal returns the accelerator of an instance, as CUDA counts those that this process sees; nil means 0.
	Ordinal func(dataplane.InstanceSpec) int
	// Pin gives the runs of an instance with cores of its own as many processors, which no other instance uses.
	Pin bool
}

// Model is one model file.
type Model struct {
	Path string
	// Inputs and Outputs replace the file's descriptions of the tensors with the same names: a variable dimension of
	// the file can be fixed. Other tensors stay as in the file.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// Shapes are those of tensors, by name, for files that do not say how many dimensions they have; with the batch
	// dimension.
	Shapes map[string][]int64
	// NoBatch says that the first dimension of the inputs is not a batch dimension, although it is variable in the
	// file.
	NoBatch bool
	// Rows bounds the first dimension of the tensors of a query that runs alone, as one item of any number of rows. 0
	// means that the first dimension counts the items.
	Rows int
	// AsIs runs the graph as it is in the file, without optimisation by the runtime. It is for files that
	// Backend.Optimize wrote.
	AsIs bool
	// Reshapes are tensors that clients see in another shape than the model has, by name: Own is the model's shape,
	// Seen the clients', both with the batch dimension.
	Reshapes map[string]Reshape
	// Sequence says which inputs follow from the sequence of a query; nil for none. Such a model runs at a stateful
	// stage.
	Sequence *repository.Sequence
	// Mask is the input that says what is padded; empty for repository.MaskName.
	Mask string
	// Example returns inputs of so many items for warming the model up. Nil means zeros, with 1 for every variable
	// dimension.
	Example func(items int) []tensor.Tensor
}

// Reshape is a tensor's shape as the model has it and as clients see it.
type Reshape struct{ Own, Seen []int64 }
