package python

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// mixed is an instance with a part for its models in Python and one for all others. A part is launched with its first
// variant.
type mixed struct {
	over *over
	spec dataplane.InstanceSpec

	mu    sync.RWMutex
	parts map[dataplane.Backend]dataplane.Runner
	of    map[serving.VariantID]dataplane.Runner // also of variants that have another model by now
}

// Load implements dataplane.Runner.
func (m *mixed) Load(ctx context.Context, v serving.VariantID, limit int) error {
	b, err := m.over.backendOf(v)
	if err != nil {
		return err
	}
	m.mu.RLock()
	r := m.parts[b]
	m.mu.RUnlock()
	if r != nil {
		err = r.Load(ctx, v, limit)
	} else {
		spec := m.spec
		spec.Variants, spec.BatchLimit = []serving.VariantID{v}, limit
		r, err = b.Launch(ctx, spec)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	closed := m.parts == nil
	if !closed {
		m.parts[b], m.of[v] = r, r
	}
	m.mu.Unlock()
	if closed { // while the model loaded
		return errors.Join(fmt.Errorf("python: instance %d: %w", m.spec.ID, errClosed), r.Close())
	}
	return nil
}

// loaded returns the part that has a variant.
func (m *mixed) loaded(v serving.VariantID) (dataplane.Runner, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if r := m.of[v]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("python: instance %d: variant %d is not loaded", m.spec.ID, v)
}

// Unload implements dataplane.Runner.
func (m *mixed) Unload(ctx context.Context, v serving.VariantID) error {
	r, err := m.loaded(v)
	if err != nil {
		return err
	}
	return r.Unload(ctx, v)
}

// Run implements dataplane.Runner.
func (m *mixed) Run(ctx context.Context, b *dataplane.Batch) error {
	r, err := m.loaded(b.Variant)
	if err != nil {
		return err
	}
	return r.Run(ctx, b)
}

// Footprint implements dataplane.Footprint: it is known where that of all parts is.
func (m *mixed) Footprint() (total int64, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, r := range m.parts { // any order: they are added up
		f, ok := r.(dataplane.Footprint)
		if !ok {
			return 0, false
		}
		took, ok := f.Footprint()
		if !ok {
			return 0, false
		}
		total, known = total+took, true
	}
	return total, known
}

// Close implements dataplane.Runner. Closing twice does nothing.
func (m *mixed) Close() error {
	m.mu.Lock()
	parts := m.parts
	m.parts, m.of = nil, nil
	m.mu.Unlock()
	var errs []error
	for _, r := range parts { // any order: both end
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
