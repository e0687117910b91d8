package python

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Backend launches instances of models in Python. It is safe for concurrent use.
type Backend struct {
	c Config

	mu          sync.Mutex
	interpreter string // once found
	models      map[serving.VariantID]Model
	known       map[serving.VariantID]Interface

	spares *spares
}

var _ dataplane.Backend = (*Backend)(nil)

// New returns a backend. It starts nothing yet.
func New(c Config) *Backend {
	if c.Log == nil {
		c.Log = func(string, string) {}
	}
	b := &Backend{c: c, models: maps.Clone(c.Models), known: make(map[serving.VariantID]Interface)}
	if b.models == nil {
		b.models = make(map[serving.VariantID]Model)
	}
	b.spares = newSpares(b, c.Spares)
	return b
}

// Close ends the spare processes. It must come after those of all instances.
func (b *Backend) Close() { b.spares.close() }

// Bind sets the model of a variant and replaces the one set before. Running instances keep theirs.
func (b *Backend) Bind(v serving.VariantID, m Model) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.models[v] = m
	delete(b.known, v)
}

// Unbind forgets the model of a variant. Running instances keep theirs.
func (b *Backend) Unbind(v serving.VariantID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.models, v)
	delete(b.known, v)
}

// Has reports whether a variant is a model in Python.
func (b *Backend) Has(v serving.VariantID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.models[v]
	return ok
}

func (b *Backend) modelOf(v serving.VariantID) (Model, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.models[v]
	if !ok {
		return m, fmt.Errorf("python: variant %d is no model in Python", v)
	}
	return m, nil
}

// Interpreter returns the path of the interpreter, which it looks for once. The error wraps ErrNoInterpreter.
func (b *Backend) Interpreter(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.interpreter != "" {
		return b.interpreter, nil
	}
	var err error
	b.interpreter, err = findInterpreter(ctx, b.c.Interpreter)
	return b.interpreter, err
}

// about is what a model says of itself.
type about struct {
	inputs, outputs []tensor.Spec // nil where it does not say
	batched         bool          // the first dimension of all tensors counts items
	maxBatch        int
	streams         bool
	eachQuery       bool
	sample          bool
}

// Interface is what a model says of its tensors.
type Interface struct {
	Inputs, Outputs []tensor.Spec // nil where it does not say
	Batched         bool          // the first dimension counts items
	MaxBatch        int           // items of the largest batch that it takes
	Streams         bool          // it keeps something from query to query of a stream
	EachQuery       bool          // it is called for one query at a time, with all its rows
	// Sample holds inputs for batches of 1, 2, 4, ... items; nil for a model that gives none of its own.
	Sample func(items int) []tensor.Tensor
}

// launch starts a process, or takes a spare one, and has it load a model.
func (b *Backend) launch(ctx context.Context, m *Model, spec dataplane.InstanceSpec) (*process, error) {
	interpreter, err := b.Interpreter(ctx)
	if err != nil {
		return nil, err
	}
	environment := b.c.environment(spec)
	if x := b.spares.take(m, environment); x != nil {
		err := b.load(ctx, x, m, spec)
		if !errors.Is(err, errTalk) || ctx.Err() != nil {
			return loaded(x, err)
		}
		// It may have ended for a reason of its own, so that a new one decides.
	}
	x, err := start(ctx, &b.c, interpreter, m.Name, environment)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Name, err)
	}
	return loaded(x, b.load(ctx, x, m, spec))
}

func loaded(x *process, err error) (*process, error) {
	if err != nil {
		return nil, err
	}
	return x, nil
}

// load has a process load a model. With an error the process has ended.
func (b *Backend) load(ctx context.Context, x *process, m *Model, spec dataplane.InstanceSpec) error {
	var out answer
	err := x.talk(ctx, &ask{Op: "load", Model: m.Source, Config: &loadConfig{
		Name: m.Name, Options: m.Options, Cores: spec.Cores, Inputs: describedOf(m.Inputs),
		Outputs: describedOf(m.Outputs),
	}}, &out)
	if err == nil {
		err = out.failure(m, "its load")
	}
	if err == nil {
		x.about, err = out.about(m)
	}
	if err == nil {
		return nil
	}
	x.discard()
	if errors.Is(err, errTalk) {
		err = fmt.Errorf("model %q: its process %s during its load: %w", m.Name, x.how, err)
	}
	return err
}

// about reads the answer to a load.
func (a *answer) about(m *Model) (out about, err error) {
	out = about{batched: a.Batched, maxBatch: max(1, a.MaxBatch), streams: a.Streams, eachQuery: a.EachQuery,
		sample: a.Sample}
	spec := func(name, kind string, shape []int64) tensor.Spec {
		d := tensor.ParseDType(kind)
		if d == tensor.Invalid && err == nil {
			err = fmt.Errorf("model %q: tensor %q has the data type %.40q, which there is not", m.Name, name, kind)
		}
		return tensor.Spec{Name: name, DType: d, Shape: shape}
	}
	for _, t := range a.Inputs {
		out.inputs = append(out.inputs, spec(t.Name, t.DataType, t.Shape))
	}
	for _, t := range a.Outputs {
		out.outputs = append(out.outputs, spec(t.Name, t.DataType, t.Shape))
	}
	return out, err
}

// Interface returns what a variant's model says of its tensors. The first call loads the model for a short time.
func (b *Backend) Interface(ctx context.Context, v serving.VariantID) (Interface, error) {
	m, err := b.modelOf(v)
	if err != nil {
		return Interface{}, err
	}
	b.mu.Lock()
	known, ok := b.known[v]
	b.mu.Unlock()
	if ok {
		return known, nil
	}
	out, err := b.Describe(ctx, &m)
	if err != nil {
		return out, err
	}
	b.mu.Lock()
	b.known[v] = out
	b.mu.Unlock()
	return out, nil
}

// Describe returns what a model says of its tensors, which it loads for a short time.
func (b *Backend) Describe(ctx context.Context, m *Model) (Interface, error) {
	x, err := b.launch(ctx, m, dataplane.InstanceSpec{})
	if err != nil {
		return Interface{}, err
	}
	defer x.free()
	defer x.end()
	a := &x.about
	out := Interface{
		Inputs: a.inputs, Outputs: a.outputs, Batched: a.batched, MaxBatch: a.maxBatch, Streams: a.streams,
		EachQuery: a.eachQuery,
	}
	if a.sample {
		samples, err := x.samples(ctx, m)
		if err != nil {
			return Interface{}, err
		}
		out.Sample = func(items int) []tensor.Tensor { return samples[items] }
	}
	return out, nil
}

// Launch implements dataplane.Backend.
func (b *Backend) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	in := &instance{b: b, spec: spec, pools: make(map[serving.VariantID]*pool)}
	for _, v := range spec.Variants {
		if err := in.Load(ctx, v, spec.BatchLimit); err != nil {
			_ = in.Close()
			return nil, err
		}
	}
	return in, nil
}

// instance is the loaded variants of an instance, each with processes of its own.
type instance struct {
	b    *Backend
	spec dataplane.InstanceSpec

	mu    sync.RWMutex
	pools map[serving.VariantID]*pool // nil once closed
}

// Load implements dataplane.Runner. Loading a variant that is loaded does nothing.
func (in *instance) Load(ctx context.Context, v serving.VariantID, limit int) error {
	in.mu.RLock()
	have, closed := in.pools[v] != nil, in.pools == nil
	in.mu.RUnlock()
	if closed {
		return fmt.Errorf("python: instance %d: %w", in.spec.ID, errClosed)
	}
	if have {
		return nil
	}
	m, err := in.b.modelOf(v)
	if err != nil {
		return err
	}
	p, err := in.b.open(ctx, m, in.spec, max(limit, 1))
	if err != nil {
		return err
	}
	in.mu.Lock()
	_, twice := in.pools[v]
	closed = in.pools == nil
	if !closed && !twice {
		in.pools[v] = p
	}
	in.mu.Unlock()
	if closed || twice { // while the model loaded
		p.close()
	}
	if closed {
		return fmt.Errorf("python: instance %d: %w", in.spec.ID, errClosed)
	}
	return nil
}

// Unload implements dataplane.Runner.
func (in *instance) Unload(_ context.Context, v serving.VariantID) error {
	in.mu.Lock()
	p := in.pools[v]
	delete(in.pools, v)
	in.mu.Unlock()
	if p == nil {
		return fmt.Errorf("python: instance %d: variant %d is not loaded", in.spec.ID, v)
	}
	p.close()
	return nil
}

// Close implements dataplane.Runner. Closing twice does nothing.
func (in *instance) Close() error {
	in.mu.Lock()
	all := in.pools
	in.pools = nil
	in.mu.Unlock()
	var ends sync.WaitGroup
	for _, v := range slices.Sorted(maps.Keys(all)) {
		ends.Go(all[v].close)
	}
	ends.Wait()
	return nil
}

// Run implements dataplane.Runner.
func (in *instance) Run(ctx context.Context, b *dataplane.Batch) error {
	in.mu.RLock()
	p := in.pools[b.Variant]
	in.mu.RUnlock()
	if p == nil {
		return fmt.Errorf("python: instance %d: variant %d is not loaded", in.spec.ID, b.Variant)
	}
	return p.run(ctx, b)
}
