package builtin

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
)

// Backend runs instances of functions itself and passes those of models to another backend. It is safe for concurrent
// use.
type Backend struct {
	functions *Functions
	models    dataplane.Backend
}

var _ dataplane.Backend = (*Backend)(nil)

// New returns a backend for the variants in functions. All other variants belong to models, which may be nil when there
// are none.
func New(functions *Functions, models dataplane.Backend) *Backend {
	return &Backend{functions, models}
}

// Launch implements dataplane.Backend. The variants of an instance are of one stage, and so all functions or all
// models.
func (b *Backend) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	count := 0
	for _, v := range spec.Variants {
		if b.functions.get(v) != nil {
			count++
		}
	}
	switch {
	case count == 0 && b.models == nil:
		return nil, fmt.Errorf("builtin backend: instance %d: none of its variants %v is a function", spec.ID,
			spec.Variants)
	case count == 0:
		return b.models.Launch(ctx, spec)
	case count < len(spec.Variants):
		return nil, fmt.Errorf(
			"builtin backend: instance %d: some of its variants %v are functions and some are models",
			spec.ID, spec.Variants)
	}
	in := &instance{functions: b.functions, loaded: make(map[serving.VariantID]bool)}
	for _, v := range spec.Variants {
		if err := in.Load(ctx, v, spec.BatchLimit); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// instance runs functions on the caller's goroutine.
type instance struct {
	functions *Functions

	mu     sync.RWMutex
	loaded map[serving.VariantID]bool
}

// Load implements dataplane.Runner.
func (in *instance) Load(_ context.Context, v serving.VariantID, _ int) error {
	if in.functions.get(v) == nil {
		return fmt.Errorf("builtin backend: variant %d is no function", v)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.loaded[v] = true
	return nil
}

// Unload implements dataplane.Runner.
func (in *instance) Unload(_ context.Context, v serving.VariantID) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.loaded[v] {
		return fmt.Errorf("builtin backend: variant %d is not loaded", v)
	}
	delete(in.loaded, v)
	return nil
}

// Run implements dataplane.Runner: part by part, until ctx ends.
func (in *instance) Run(ctx context.Context, b *dataplane.Batch) error {
	in.mu.RLock()
	loaded := in.loaded[b.Variant]
	in.mu.RUnlock()
	if !loaded {
		return fmt.Errorf("builtin backend: variant %d is not loaded", b.Variant)
	}
	f := in.functions.get(b.Variant)
	for i := range b.Portions {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := &b.Portions[i]
		r, err := f.Run(&ops.Call{Inputs: p.Inputs, Offset: p.Offset, State: p.State})
		if err != nil {
			return fmt.Errorf("query %d: %w", p.Query, err)
		}
		p.Outputs = r.Outputs
		if f.Stateful() {
			p.State = r.State
		}
	}
	return nil
}

// Close implements dataplane.Runner.
func (in *instance) Close() error { return nil }
