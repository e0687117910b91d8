//go:build cgo

package onnx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Backend launches instances that run models in this process. It is safe for concurrent use.
type Backend struct {
	cfg Config

	activity   activity
	processors processors
	turn       chan struct{} // held by a load while batches run: such loads go one at a time

	mu     sync.Mutex
	models map[serving.VariantID]*model
	chosen map[serving.WorkerID]choice
}

var _ dataplane.Backend = (*Backend)(nil)

// New loads the ONNX Runtime library. Models are read when they are first needed.
// When the library is missing the error wraps native.ErrMissing and says how to get it.
func New(cfg Config) (*Backend, error) {
	if err := initRuntime(cfg.Library); err != nil {
		return nil, err
	}
	cfg.Models = maps.Clone(cfg.Models)
	if cfg.Models == nil {
		cfg.Models = map[serving.VariantID]Model{}
	}
	b := &Backend{cfg: cfg, turn: make(chan struct{}, 1), models: map[serving.VariantID]*model{}}
	o, err := b.options(0)
	if err != nil {
		return nil, err
	}
	return b, o.Destroy()
}

// options are the settings of one session on the processor. A run may use so many cores; 0 leaves that to the runtime.
func (b *Backend) options(cores int) (*ort.SessionOptions, error) {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	spin := "0"
	if b.cfg.Spin {
		spin = "1"
	}
	err = errors.Join(
		o.SetIntraOpNumThreads(max(0, cores)),
		o.SetInterOpNumThreads(1),
		o.SetExecutionMode(ort.ExecutionModeSequential),
		o.SetLogSeverityLevel(ort.LoggingLevelFatal),
		o.AddSessionConfigEntry("session.intra_op.allow_spinning", spin),
		o.AddSessionConfigEntry("session.inter_op.allow_spinning", spin),
	)
	if err != nil {
		_ = o.Destroy()
		return nil, fmt.Errorf("onnx: %w", err)
	}
	return o, nil
}

// model returns the description of a variant's model. The first call reads its file.
func (b *Backend) model(v serving.VariantID) (*model, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.models[v]; m != nil {
		return m, nil
	}
	cfg, ok := b.cfg.Models[v]
	if !ok {
		return nil, fmt.Errorf("onnx: variant %d has no model file configured", v)
	}
	m, err := readModel(cfg)
	if err != nil {
		return nil, fmt.Errorf("variant %d: %w", v, err)
	}
	m.memory, m.tell = b.cfg.Memory, b.cfg.Tell
	b.models[v] = m
	return m, nil
}

// Bind sets the model file of a variant and replaces the one set before. Running instances keep theirs.
func (b *Backend) Bind(v serving.VariantID, m Model) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg.Models[v] = m
	delete(b.models, v)
}

// Unbind forgets the model file of a variant. Running instances keep theirs.
func (b *Backend) Unbind(v serving.VariantID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.cfg.Models, v)
	delete(b.models, v)
}

// Interface is the inputs and outputs of a model.
type Interface struct {
	Inputs, Outputs []tensor.Spec
	// Batched says that the first dimension of every tensor counts items. A model that is not batched runs one query at
	// a time.
	Batched bool
}

// Interface returns the inputs and outputs of a variant's model, with the configuration applied. The first call loads
// the model for a short time.
func (b *Backend) Interface(v serving.VariantID) (Interface, error) {
	m, err := b.model(v)
	if err != nil {
		return Interface{}, err
	}
	return Interface{Inputs: m.visible(m.inputs), Outputs: m.visible(m.outputs), Batched: m.batched}, nil
}

// Launch loads the variants and warms them up at the batch sizes 1, 2, 4, ... up to the limit, and the limit itself.
func (b *Backend) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	if spec.Slots < 1 || spec.BatchLimit < 1 {
		return nil, fmt.Errorf("onnx: instance %d has %d slots and a batch limit of %d, want at least 1 of each",
			spec.ID, spec.Slots, spec.BatchLimit)
	}
	provider, _, err := b.Provider(spec.Worker)
	if err != nil {
		return nil, err
	}
	in := &instance{
		b: b, spec: spec, provider: provider, slots: make(chan int, spec.Slots),
		loaded: map[serving.VariantID]*loaded{}, pinned: make([]*pinned, spec.Slots),
	}
	if spec.Cores > 0 && b.device(spec.Worker).Pin {
		if err := in.pin(); err != nil && b.cfg.Tell != nil {
			b.cfg.Tell(fmt.Errorf("onnx: instance %d has no processors of its own: %w", spec.ID, err))
		}
	}
	for i := range spec.Slots {
		in.slots <- i
	}
	for _, v := range spec.Variants {
		if err := in.Load(ctx, v, spec.BatchLimit); err != nil {
			_ = in.Close()
			return nil, err
		}
	}
	return in, nil
}
