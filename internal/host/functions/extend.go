package functions

import (
	"context"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Extension is a change of the spec by somebody else than the manager, while no function changes.
type Extension struct {
	// Spec is in force, and Measured are the measurements of it.
	Spec     *serving.Spec
	Measured serving.Measurements
	manager  *Manager
}

// Extend runs do while no function is deployed or deleted.
func (m *Manager) Extend(ctx context.Context, do func(*Extension) error) error {
	return m.change(ctx, func() error {
		m.mu.Lock()
		x := &Extension{Spec: m.spec, Measured: m.measured, manager: m}
		m.mu.Unlock()
		return do(x)
	})
}

// Growth is the growth to a spec, which is not in force by that.
func (x *Extension) Growth(spec *serving.Spec, measured serving.Measurements) (*engine.Growth, error) {
	return x.manager.growth(spec, measured)
}

// Put has the manager build on a spec from now on. The caller hands the growth that it returns to the engine.
func (x *Extension) Put(spec *serving.Spec, measured serving.Measurements) (*engine.Growth, error) {
	g, err := x.manager.growth(spec, measured)
	if err != nil {
		return nil, err
	}
	x.manager.mu.Lock()
	x.manager.spec, x.manager.measured = spec, measured
	x.manager.mu.Unlock()
	x.Spec, x.Measured = spec, measured
	return g, nil
}
