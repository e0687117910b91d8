package host

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planned is the state that a run starts with: a latency profile, a planner and its first plan.
type Planned struct {
	*Profiled
	planner plan.Planner
	first   *plan.Plan
}

// Plan makes the first plan of a run, for the demand that the configuration expects. A system that learns latency
// starts with a profile only if that was measured. Latencies assumed for fake workers are not used: the system has to
// learn them. An error is of kind fault.Config, or ctx's error.
func (p *Profiled) Plan(ctx context.Context) (*Planned, error) {
	out, err := p.Unplanned()
	if err != nil {
		return nil, err
	}
	if err := out.makeFirst(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// PlanOrEmpty is Plan, with an empty plan where none can be made, and the reason.
func (p *Profiled) PlanOrEmpty(ctx context.Context) (out *Planned, missed, err error) {
	if out, err = p.Unplanned(); err != nil {
		return nil, nil, err
	}
	if err = out.makeFirst(ctx); err != nil && ctx.Err() == nil {
		out.first = plan.Empty(out.planner.Name(), nil)
		return out, err, nil
	}
	return out, nil, err
}

// makeFirst makes the first plan.
func (p *Planned) makeFirst(ctx context.Context) (err error) {
	p.first, err = dataplane.MakePlan(ctx, p.planner, p.firstRequest())
	p.NoticeTooSlow(p.first)
	switch panicked := (*dataplane.Panic)(nil); {
	case err == nil:
		p.noticeLeftOut()
		return nil
	case ctx.Err() == nil && !errors.As(err, &panicked):
		return fault.Wrap(fault.Config, err)
	}
	return err
}

// Unplanned returns a run without a plan.
func (p *Profiled) Unplanned() (*Planned, error) {
	begin := *p
	if p.StartsUnprofiled() {
		begin.latencies = profile.NewLearned(p.Spec(), nil)
	}
	planner, err := begin.Planner(p.system)
	if err != nil {
		return nil, err
	}
	return &Planned{Profiled: &begin, planner: planner}, nil
}

// firstRequest returns the request for the first plan. Of apps whose demand nobody has written it asks for as much as
// later requests do of those that are not called: the first query finds something loaded, on rented machines, too.
func (p *Planned) firstRequest() plan.Request {
	r := plan.Request{Spec: p.Spec(), Rates: p.Demand()}
	for len(r.Rates) < len(p.Spec().Apps) {
		r.Rates = append(r.Rates, 0) // functions that have not been called yet
	}
	r.Rates = p.system.AtLeast(r.Rates)
	if p.StartsUnprofiled() {
		r.Beliefs = profile.NewLearned(p.Spec(), nil).Frozen()
	}
	r.Spec = profile.Stretched(r.Spec, r.Believed(p.latencies), nil)
	return r
}

// PlannerInUse is the planner that made the first plan and makes the next ones. It is not safe for concurrent use.
func (p *Planned) PlannerInUse() plan.Planner { return p.planner }

// WithPlanner returns a copy with a planner around the one in use.
func (p *Planned) WithPlanner(over plan.Planner) *Planned {
	out := *p
	out.planner = over
	return &out
}

// FirstPlan is the plan that a run starts with. It is shared: do not change it.
func (p *Planned) FirstPlan() *plan.Plan { return p.first }

// Engine makes the engine of a run.
func (p *Planned) Engine() (*engine.Engine, error) {
	latencies := p.latencies
	if p.StartsUnprofiled() {
		latencies = nil
	}
	e, err := p.system.Engine(p.Spec(), latencies, p.planner.Provides())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return e, nil
}
