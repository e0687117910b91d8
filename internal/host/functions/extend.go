package functions

import (
	"context"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
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

// Free lists what a growth may take the places of.
func (x *Extension) Free() serving.Free { return x.manager.host.Free() }

// Growth is the growth to a spec, which is not in force by that.
func (x *Extension) Growth(spec *serving.Spec, measured serving.Measurements) (*engine.Growth, error) {
	return x.manager.growth(spec, measured)
}

// Plan returns a plan as it would be made after a growth, or the reason why none could be.
func (x *Extension) Plan(ctx context.Context, g *engine.Growth) (*plan.Plan, error) {
	return x.manager.host.Plan(ctx, g)
}

// Put puts a spec without new apps into force.
func (x *Extension) Put(spec *serving.Spec, measured serving.Measurements) error {
	g, err := x.Growth(spec, measured)
	if err != nil {
		return err
	}
	return x.Grow(g, nil)
}

// Grow puts a growth into force, with the wiring of its new apps' stages; nil where each has one.
func (x *Extension) Grow(g *engine.Growth, wiring []pipeline.Wiring) error {
	x.Spec, x.Measured = g.Spec, g.Measurements
	return x.manager.put(g, wiring, func() {})
}
