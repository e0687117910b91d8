package planning

import (
	"context"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Question asks for plans of every system, for every demand, on the fleet as it is and on every changed one.
type Question struct {
	Of      *host.Profiled
	Systems []systems.System // at least one
	Demands []Demand         // at least one
	Changed []Fleet          // besides the fleet as it is
	// Running is a demand in queries/s by AppID. Each planner's plans start from its own plan for this demand, which
	// runs on the fleet as it is. Nil means that nothing runs.
	Running []float64
}

// Demand is a demand to plan for.
type Demand struct {
	Rates []float64 // queries/s by AppID
	// Scale is the factor on a base demand that Rates were made with; 0 for none. It is copied to the answer.
	Scale float64
}

// Total is the sum over the apps, in queries/s.
func (d *Demand) Total() (out float64) {
	for _, r := range d.Rates {
		out += r
	}
	return out
}

// times returns a multiple of the demand.
func (d *Demand) times(multiple float64) *Demand {
	out := &Demand{Rates: make([]float64, len(d.Rates))}
	for a, r := range d.Rates {
		out.Rates[a] = r * multiple
	}
	return out
}

// Single reports whether one plan is asked for. Only then the answer has a diagnosis.
func (q *Question) Single() bool { return len(q.Systems)*(1+len(q.Changed))*len(q.Demands) == 1 }

// fleets returns the fleet as it is and the changed ones.
func (q *Question) fleets() []Fleet { return append([]Fleet{{profiled: q.Of}}, q.Changed...) }

// RunningError means that there is no plan for Question.Running.
type RunningError struct{ Err error }

func (e *RunningError) Error() string { return "the plan that is to be running: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RunningError) Unwrap() error { return e.Err }

// answerer answers a question.
type answerer struct {
	*Question
	running map[string]*plan.Plan // by the name of the system
}

// Plans makes every plan of a question and reports on them; plans for one demand are adjacent. A demand without a plan
// is part of the report and no error. An error is that of ctx or of a planner that cannot be built (see
// host.Profiled.Planner), or a *RunningError.
func Plans(ctx context.Context, q *Question) (*Report, error) {
	a := &answerer{Question: q}
	fleets := q.fleets()
	total := len(q.Systems) * len(fleets) * len(q.Demands)
	out := &Report{File: q.Of.Name()}
	for i := range q.Demands {
		for k := range fleets {
			for _, s := range q.Systems {
				q.Of.Options().Progress(float64(len(out.Plans))/float64(total), "planning")
				v, err := a.plan(ctx, s, &fleets[k], &q.Demands[i])
				if err != nil {
					return nil, err
				}
				out.Plans = append(out.Plans, *v)
			}
		}
	}
	return out, nil
}

// request returns a system's planner for a fleet, and what it is asked for a demand.
func (a *answerer) request(ctx context.Context, s systems.System, f *Fleet, d *Demand) (plan.Planner, plan.Request,
	error) {
	r := plan.Request{Spec: f.profiled.Spec(), Rates: s.AtLeast(d.Rates)}
	planner, err := f.profiled.Planner(s)
	if err == nil {
		r.Snapshot, err = a.snapshot(ctx, s, f)
	}
	return host.PlannerOf(planner, r.Spec), r, err
}

// plan makes one plan and describes it.
func (a *answerer) plan(ctx context.Context, s systems.System, f *Fleet, d *Demand) (*Plan, error) {
	p := f.profiled
	planner, r, err := a.request(ctx, s, f, d)
	if err != nil {
		return nil, err
	}
	made, failed := dataplane.MakePlan(ctx, planner, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.NoticeTooSlow(made)
	v := &Plan{}
	if failed != nil {
		v.refused(p.Spec(), d, failed)
	} else {
		*v = describeBy(planner, p, d, made)
	}
	if err := a.beside(ctx, p, d, v); err != nil {
		return nil, err
	}
	v.System, v.Planner, v.WhatIf, v.Scale = s.Name, planner.Name(), f.name, d.Scale
	if v.Goal == "" {
		v.Goal = s.Options.Planning.Goal
	}
	exact, ok := planner.(*proteus.Planner)
	switch {
	case a.Single() && (ok || a.asksForMends(planner, v)):
		if err := a.diagnose(ctx, p, planner, r, d, v); err != nil {
			return nil, err
		}
	case ok && failed == nil && d.Total() > 0:
		multiple, _, err := proteus.Reach(ctx, exact, r)
		if err != nil {
			return nil, err
		}
		reach := multiple * d.Total()
		v.Reach = &reach
	}
	return v, nil
}

// snapshot returns the snapshot of a fleet on which the plan for Running runs; nil without Running.
func (a *answerer) snapshot(ctx context.Context, s systems.System, f *Fleet) (*fleet.Snapshot, error) {
	if a.Running == nil {
		return nil, nil
	}
	made, ok := a.running[s.Name]
	if !ok {
		planner, err := a.Of.Planner(s)
		if err != nil {
			return nil, err
		}
		if made, err = planner.Plan(ctx, plan.Request{Spec: a.Of.Spec(), Rates: a.Running}); err != nil {
			return nil, &RunningError{err}
		}
		if a.running == nil {
			a.running = make(map[string]*plan.Plan)
		}
		a.running[s.Name] = made
	}
	return f.snapshot(a.Of.Spec(), made), nil
}

// asksForMends tells whether a plan of another planner than proteus falls short. A shortage of machines is the
// diagnosis of planners for graphs.
func (a *answerer) asksForMends(planner plan.Planner, v *Plan) bool {
	if fluidOf(planner) != nil {
		return v.FallsShort() || len(v.MissedTargets()) > 0
	}
	return v.FallsShort() && (v.Short == nil || !graphs(a.Of.Spec()))
}

// graphs tells whether an app has several stages.
func graphs(spec *serving.Spec) bool {
	return slices.ContainsFunc(spec.Apps, func(a serving.App) bool { return len(a.Stages) > 1 })
}
