package dataplane

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// ErrInstanceLost is wrapped by errors of a Runner that say the whole instance is gone (connection lost, process dead,
// device reset), as opposed to a batch that the model refused. The data plane then reports the instance lost to the
// engine, which sends the queries elsewhere, and launches the instance again.
var ErrInstanceLost = errors.New("instance lost")

// Backend brings up model runtimes. Adapters (runtime/onnx, runtime/openinference, runtime/fake) meet it; they decide
// nothing.
type Backend interface {
	// Launch prepares an instance and loads its variants. It returns when every variant is warm: the next Run of any of
	// them takes its steady-state time. It gives up when ctx ends.
	Launch(ctx context.Context, spec InstanceSpec) (Runner, error)
}

// InstanceSpec says what to bring up.
type InstanceSpec struct {
	ID         serving.InstanceID
	Worker     serving.WorkerID
	DeviceType serving.DeviceTypeID
	Variants   []serving.VariantID
	BatchLimit int // items of the largest batch that its variants are to be warm for
	Slots      int // batches that may run at once
	Cores      int // threads a run may use; 0 leaves it to the runtime
}

// Runner is one live instance. Run may be called by up to Slots goroutines at once; the other methods by one at a time,
// also while batches run.
type Runner interface {
	// Load makes one more variant ready, and warm for batches of up to limit items. Larger ones may come later, when a
	// plan raises the limit: they must run, if colder.
	Load(ctx context.Context, v serving.VariantID, limit int) error
	// Unload releases a variant. No batch of it is running or will be.
	Unload(ctx context.Context, v serving.VariantID) error
	// Run answers every part of the batch, setting its Outputs, or returns an error and the whole batch counts as
	// failed. Outputs stay valid after Run returns and belong to the parts; inputs must not be kept.
	Run(ctx context.Context, b *Batch) error
	// Close releases everything. No batch is running.
	Close() error
}

// Batch is queries run together on one variant.
type Batch struct {
	ID      serving.BatchID
	Variant serving.VariantID
	Items   int // sum over Parts
	Parts   []Part
}

// Part is one query's share of a batch: its inputs have Items rows in their first dimension (or, for a model without a
// batch dimension, the batch has exactly one part with Items 1), and its outputs must have the same number. At stages
// of apps of several stages there may be more: inputs that are no rows of the items but something that all of them
// need, such as the image that they lie in, and outputs with any number of rows, such as what was found.
type Part struct {
	Query   serving.QueryID
	Items   int
	Offset  int // first of the query's items at this stage; not 0 only where a stage's input was split
	Inputs  []tensor.Tensor
	Outputs []tensor.Tensor
	// State is, at a stateful stage, what the runner knew of the query's stream when the query before it had ended, nil
	// at the start; and then what it is to know from now on, nil for nothing. A runner replaces it and does not change
	// its bytes.
	State []byte
}
