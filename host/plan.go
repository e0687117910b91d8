package host

import (
	"context"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planned is all that a run starts with: a latency profile, a planner and its first plan.
type Planned struct {
	*Profiled
	planner plan.Planner
	first   *plan.Plan
}

// Plan makes the first plan of a run, for the demand that the configuration expects. A system that learns latency
// starts with a profile only if it was measured: it has to learn the latencies that were assumed of fake workers. An
// error is of kind fault.Config, or ctx's error.
func (p *Profiled) Plan(ctx context.Context) (*Planned, error) {
	out, err := p.withPlanner()
	if err != nil {
		return nil, err
	}
	if err := out.makeFirst(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// makeFirst asks for the first plan.
func (p *Planned) makeFirst(ctx context.Context) (err error) {
	p.NoticeTooSlow()
	p.first, err = p.planner.Plan(ctx, p.firstRequest())
	switch {
	case err == nil:
		p.noticeLeftOut()
		return nil
	case ctx.Err() == nil:
		return fault.Wrap(fault.Config, err)
	}
	return err
}

// withPlanner is a run that has no plan yet.
func (p *Profiled) withPlanner() (*Planned, error) {
	begin := *p
	if p.startsUnprofiled() {
		begin.latencies = profile.NewLearned(p.Spec(), nil)
	}
	planner, err := begin.Planner(p.system)
	if err != nil {
		return nil, err
	}
	return &Planned{Profiled: &begin, planner: planner}, nil
}

// firstRequest asks for the first plan.
func (p *Planned) firstRequest() plan.Request {
	r := plan.Request{Spec: p.Spec(), Rates: p.Demand()}
	for len(r.Rates) < len(p.Spec().Apps) {
		r.Rates = append(r.Rates, 0) // functions that nobody has called yet
	}
	if p.startsUnprofiled() {
		r.Beliefs = profile.NewLearned(p.Spec(), nil).Frozen()
	}
	return r
}

// PlannerInUse is the planner that made the first plan and makes the next ones. It is not safe for concurrent use.
func (p *Planned) PlannerInUse() plan.Planner { return p.planner }

// FirstPlan is the plan that a run starts with. It is shared: do not change it.
func (p *Planned) FirstPlan() *plan.Plan { return p.first }

// engine makes the state machine of a run.
func (p *Planned) engine() (*engine.Engine, error) {
	latencies := p.latencies
	if p.startsUnprofiled() {
		latencies = nil
	}
	e, err := p.system.Engine(p.Spec(), latencies, p.planner.Provides())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return e, nil
}
