package dataplane

import (
	"context"
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// ErrInstanceLost is wrapped by errors of a Runner that mean that the whole instance is gone: a lost connection, a dead
// process, a device that was reset. Other errors mean that the model refused the batch. The data plane reports a lost
// instance to the engine, which sends the queries elsewhere and has the instance launched again.
var ErrInstanceLost = errors.New("instance lost")

// ErrOutOfMemory is wrapped by errors of a Runner that mean that the device lacked memory for the batch. The engine
// runs its queries again in smaller batches, and makes none as large on machines of that type any more.
var ErrOutOfMemory = errors.New("the device lacks memory for the batch")

// ErrUnfit is wrapped by errors that mean that the tensors of a request do not fit a stage's model, which only the run
// shows: the client is told that its request is wrong.
var ErrUnfit = errors.New("the request does not fit")

// Backend launches model runtimes. Adapters (internal/runtime/onnx, internal/runtime/openinference,
// internal/runtime/fake) implement it. They decide nothing.
type Backend interface {
	// Launch prepares an instance and loads its variants. It returns when every variant is warm, so that the next Run
	// of any of them takes its steady-state time. It fails when ctx ends.
	Launch(ctx context.Context, spec InstanceSpec) (Runner, error)
}

// InstanceSpec describes an instance to launch.
type InstanceSpec struct {
	ID         serving.InstanceID
	Worker     serving.WorkerID
	DeviceType serving.DeviceTypeID
	Variants   []serving.VariantID
	BatchLimit int // items of the largest batch for which its variants are warmed up
	Slots      int // batches that may run at once
	Cores      int // threads a run may use; 0 leaves it to the runtime
	// Cold leaves the warming up to the caller, where that would take long.
	Cold bool
	// Accelerator is the index of the worker's accelerator that the instance has a part of, and Percent that part.
	// Percent is 0 where it has no part of one: it may use those of the worker as the backend sees fit.
	Accelerator, Percent int
}

// Runner is one running instance. Up to Slots goroutines call Run at once. The other methods are called one at a time,
// also while batches run.
type Runner interface {
	// Load makes one more variant ready, and warm for batches of up to limit items. A later plan may raise the limit:
	// larger batches must run, too, but need not be warm.
	Load(ctx context.Context, v serving.VariantID, limit int) error
	// Unload releases a variant. No batch of it runs, and none follows.
	Unload(ctx context.Context, v serving.VariantID) error
	// Run sets the Outputs of every part of the batch. With an error the whole batch counts as failed. The runner hands
	// the outputs over: it must not change them after Run has returned. It must not keep the inputs.
	Run(ctx context.Context, b *Batch) error
	// Close releases everything. No batch runs.
	Close() error
}

// Footprint is met by a Runner that may know how much memory its instance takes of the machine.
type Footprint interface {
	// Footprint returns the bytes that the loaded variants take, with the most that batches took while they warmed up;
	// false where that is not known.
	Footprint() (bytes int64, known bool)
}

// Batch is queries run together on one variant.
type Batch struct {
	ID       serving.BatchID
	Variant  serving.VariantID
	Items    int // sum over Parts
	Portions []Portion
}

// Wanted returns the outputs that any query of the batch needs; nil for all. The slice may be a portion's.
func (b *Batch) Wanted() (out []string) {
	for k := range b.Portions {
		wanted := b.Portions[k].Wanted
		if wanted == nil {
			return nil
		}
		if k == 0 {
			out = slices.Clip(wanted)
			continue
		}
		for _, name := range wanted {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Portion is the items of one query in a batch. Its inputs have Items rows in their first dimension, its outputs must
// have as many. For a model without a batch dimension the batch has one portion with one item.
//
// At stages of apps of several stages, inputs may also be something that all items need, such as the image that boxes
// lie in, and outputs may have any number of rows, such as the boxes that were found.
type Portion struct {
	Query   serving.QueryID
	Items   int
	Offset  int // of its first item among the query's items at this stage; 0 unless they run in several parts
	Inputs  []tensor.Tensor
	Outputs []tensor.Tensor
	// Wanted names the outputs that the client, or a later stage, needs; nil for all. The runner may leave others out.
	Wanted []string
	// State is the state of the query's stream at a stateful stage. Before Run it is the one that the query before has
	// left; nil at the start of a stream. Run replaces it by the one to keep; nil keeps none. Run must not change the
	// bytes of the old one.
	State []byte
	// Stream, Begins and Ends are those of the query's Request, at a stateful stage.
	Stream       string
	Begins, Ends bool
	// Partial takes each answer of a model that gives any number of them to a query; Outputs then stay empty. An error
	// ends the run. Nil takes none, as where a model is measured.
	Partial func(outputs []tensor.Tensor) error
}
