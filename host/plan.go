package host

import (
	"context"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planned is all that a run begins with: what is believed, a planner, and its first plan.
type Planned struct {
	*Profiled
	planner plan.Planner
	first   *plan.Plan
}

// Plan makes the first plan of a run, for the demand that the configuration expects. A system that learns latency while
// it runs begins without beliefs unless latencies were measured: those assumed of fake workers it has to find out. An
// error is of kind fault.Config, unless ctx has ended.
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
	if p.first, err = p.planner.Plan(ctx, p.firstRequest()); err != nil && ctx.Err() == nil {
		return fault.Wrap(fault.Config, err)
	}
	return err
}

// withPlanner is a run that has no plan yet.
func (p *Profiled) withPlanner() (*Planned, error) {
	begin := *p
	if p.learnsAnew() {
		begin.believed = profile.NewLearned(p.Spec(), nil)
	}
	planner, err := begin.Planner(p.system)
	if err != nil {
		return nil, err
	}
	return &Planned{Profiled: &begin, planner: planner}, nil
}

// firstRequest is the question that the first plan answers.
func (p *Planned) firstRequest() plan.Request {
	r := plan.Request{Spec: p.Spec(), Rates: p.Demand()}
	for len(r.Rates) < len(p.Spec().Apps) {
		r.Rates = append(r.Rates, 0) // functions that nobody has called yet
	}
	if p.learnsAnew() {
		r.Beliefs = profile.NewLearned(p.Spec(), nil).Frozen()
	}
	return r
}

// PlannerInUse is the planner that made the first plan and makes the next. It makes one plan at a time.
func (p *Planned) PlannerInUse() plan.Planner { return p.planner }

// FirstPlan is what a run begins with. It must not be changed.
func (p *Planned) FirstPlan() *plan.Plan { return p.first }

// engine makes the state machine of a run.
func (p *Planned) engine() (*engine.Engine, error) {
	believed := p.believed
	if p.learnsAnew() {
		believed = nil
	}
	e, err := p.system.Engine(p.Spec(), believed, p.planner.Provides())
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return e, nil
}
