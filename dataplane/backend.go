package dataplane

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// ErrInstanceLost is wrapped by errors of a Runner whose whole instance is gone (connection lost, process dead, device
// reset), as opposed to a batch that the model refused. The data plane then reports the instance lost to the engine,
// which sends its queries elsewhere and launches it again.
var ErrInstanceLost = errors.New("instance lost")

// Backend launches model runtimes. Adapters (runtime/onnx, runtime/openinference, runtime/fake) implement it. They make
// no decision.
type Backend interface {
	// Launch prepares an instance and loads its variants. It returns when every variant is warm: its next Run takes the
	// steady-state time. It returns early with an error when ctx ends.
	Launch(ctx context.Context, spec InstanceSpec) (Runner, error)
}

// InstanceSpec describes an instance to launch.
type InstanceSpec struct {
	ID         serving.InstanceID
	Worker     serving.WorkerID
	DeviceType serving.DeviceTypeID
	Variants   []serving.VariantID
	BatchLimit int // items of the largest batch to warm its variants for
	Slots      int // batches that may run at once
	Cores      int // threads a run may use; 0 leaves it to the runtime
}

// Runner is one running instance. Up to Slots goroutines may call Run at the same time. Of the other methods one runs
// at a time, also while batches run.
type Runner interface {
	// Load loads one more variant and warms it for batches of up to limit items. Larger ones may follow when a plan
	// raises the limit; they must run, even if slower.
	Load(ctx context.Context, v serving.VariantID, limit int) error
	// Unload releases a variant. No batch of it is running or will be.
	Unload(ctx context.Context, v serving.VariantID) error
	// Run sets the Outputs of every part of the batch. With an error the whole batch counts as failed. Outputs belong
	// to the parts and stay valid after Run returns. Inputs must not be kept.
	Run(ctx context.Context, b *Batch) error
	// Close releases everything. No batch is running.
	Close() error
}

// Batch is queries that run together on one variant.
type Batch struct {
	ID      serving.BatchID
	Variant serving.VariantID
	Items   int // sum over Parts
	Parts   []Part
}

// Part is one query's items in a batch. Its inputs have Items rows in their first dimension, and its outputs must have
// as many. For a model without a batch dimension the batch has exactly one part with Items 1. In apps of several stages
// there may be further inputs that all items need, such as the image around boxes, and outputs with any number of rows,
// such as detections.
type Part struct {
	Query   serving.QueryID
	Items   int
	Offset  int // index of its first item at this stage; 0 unless a stage's input was split
	Inputs  []tensor.Tensor
	Outputs []tensor.Tensor
	// State is, at a stateful stage, the state of the query's stream after the query before it; nil at the start. The
	// runner sets the state for the next query; nil for none. It replaces the slice and does not change its bytes.
	State []byte
}
