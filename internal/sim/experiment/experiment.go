// Package experiment runs simulations side by side. A case is a system in an environment under a load; a sweep runs
// many cases. Reproductions of papers and searches for pools of machines are built from it.
package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Environment is the surroundings of a system in a case: machines and models, what planners believe of their latency,
// and how they really behave. Cases share it; running one does not change it.
type Environment struct {
	Spec    *serving.Spec
	Beliefs profile.Profile // nil for systems that learn
	// Truth returns the machines of one run. They draw their random numbers from the given source.
	Truth   func(*rand.Rand) (truth.Model, error)
	Solver  milp.Solver
	Batches []int // batch sizes that may be planned; nil for any
	// Policies stores policies that planners compute in advance; nil stores none.
	Policies ramsis.Store
	Apps     []report.AppInfo
	// Measured is what planners know of the scatter of run times. With it those that can try their plans by simulation
	// do; nil leaves their choice to estimates.
	Measured *serving.Measurements
}

// Known returns the part of the environment that planners may know: all but the truth.
func (env *Environment) Known() systems.PlannerInputs {
	believed := env.Beliefs
	if believed == nil {
		believed = profile.NewLearned(env.Spec, nil)
	}
	return systems.PlannerInputs{Profile: believed, Solver: env.Solver, Batches: env.Batches, Policies: env.Policies}
}

// Case is one simulation, up to its seed.
type Case struct {
	Env    *Environment
	System systems.System
	// Scaler replaces the system's scaler; nil leaves it.
	Scaler scale.Scaler
	// Source returns the queries of a run with the given seed.
	Source func(seed uint64) workload.Source
	// Clients returns the clients of sessions in a run with the given seed; nil where there are none.
	Clients func(seed uint64) []workload.Client
	// Content returns the content of the queries of a run with the given seed. Nil means that every stage sends as many
	// items as its fan-outs say.
	Content func(seed uint64) truth.Content
	// Span is the time during which queries arrive.
	Span time.Duration
	// FirstRates is the demand that the first plan is made for, by AppID in queries/s.
	FirstRates []float64
	// Initial replaces the first plan; nil has the system's planner make one.
	Initial *plan.Plan
	// PlanDelay is the simulated time that planning takes.
	PlanDelay time.Duration
	Record    report.Options
	// NoReport leaves Run.Report nil. It saves time where OnOutcome collects all that is needed.
	NoReport bool
	// OnOutcome is called when a query ends; nil for none. The outcome is valid during the call only.
	OnOutcome func(*report.Outcome)
	// OnStep is called after every step of the engine, before OnOutcome; nil for none. The slices are valid during the
	// call only.
	OnStep func(now serving.Time, in []engine.Input, out []engine.Decision)
}

// Run is the result of a case with one seed.
type Run struct {
	Report *report.Report
	Plans  []TimedPlan
	sim.Result
}

// TimedPlan is a plan and the time at which it was asked for.
type TimedPlan struct {
	At   serving.Time
	Plan *plan.Plan
}

// Run simulates the case with one seed. A plan that fails ends the run with an error. The same seed gives the same run.
func (c *Case) Run(ctx context.Context, seed uint64) (*Run, error) {
	env := c.Env
	known := env.Known()
	if env.Measured != nil {
		known.Trials = Trials{System: c.System, Known: plan.Known{Measurements: *env.Measured, Profile: env.Beliefs}}
	}
	planner, err := c.System.NewPlanner(known)
	if err != nil {
		return nil, err
	}
	out := &Run{}
	initial := c.Initial
	if initial == nil {
		first := plan.Request{Spec: env.Spec, Rates: c.FirstRates}
		if env.Beliefs == nil {
			first.Beliefs = profile.NewLearned(env.Spec, nil).Frozen()
		}
		if initial, err = planner.Plan(ctx, first); err != nil {
			return nil, err
		}
	}
	out.Plans = append(out.Plans, TimedPlan{0, initial})
	e, err := c.Engine(planner.Provides())
	if err != nil {
		return nil, err
	}
	machines, err := env.Truth(workload.Rand(seed, "service"))
	if err != nil {
		return nil, err
	}
	var recorder *report.Recorder
	if !c.NoReport {
		recorder = report.NewRecorder(env.Apps, c.Record)
	}
	noted := &recordingPlanner{Planner: planner, ctx: ctx}
	config := sim.Config{
		Spec: env.Spec, Engine: e, Truth: machines, Source: c.Source(seed), Initial: initial, Warm: true,
		Planner:   noted,
		PlanDelay: c.PlanDelay, Recorder: recorder,
	}
	if c.Clients != nil {
		config.Clients = c.Clients(seed)
	}
	if c.Content != nil {
		config.Content = c.Content(seed)
	}
	config.Observe = func(now serving.Time, in []engine.Input, decisions []engine.Decision) {
		noted.now = now
		if c.OnStep != nil {
			c.OnStep(now, in, decisions)
		}
		if c.OnOutcome == nil {
			return
		}
		for i := range decisions {
			if decisions[i].Kind == engine.EndQuery {
				o := decisions[i].Ended(now)
				c.OnOutcome(&o)
			}
		}
	}
	if out.Result, err = sim.Run(config); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", c.System.Name, seed, err)
	}
	if noted.err != nil {
		return nil, fmt.Errorf("%s, seed %d: a plan failed: %w", c.System.Name, seed, noted.err)
	}
	out.Plans = append(out.Plans, noted.plans...)
	if recorder != nil {
		out.Report = recorder.Report(report.Meta{Name: c.System.Name, Seed: seed, Duration: c.Span, Usage: &out.Usage})
	}
	return out, nil
}

// Engine returns a new engine of the case's system for plans that carry the given sections.
func (c *Case) Engine(provides plan.Sections) (*engine.Engine, error) {
	if c.Scaler == nil {
		return c.System.Engine(c.Env.Spec, c.Env.Beliefs, provides)
	}
	return c.System.EngineWith(c.Env.Spec, c.Env.Beliefs, provides, c.Scaler)
}

// recordingPlanner remembers the plans that it returned and the first error. An error must fail the run: a system that
// continues with its old plan would look better or worse than it is.
type recordingPlanner struct {
	plan.Planner
	ctx   context.Context
	now   serving.Time
	plans []TimedPlan
	err   error
}

func (n *recordingPlanner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	p, err := n.Planner.Plan(n.ctx, r)
	if err != nil {
		if n.err == nil {
			n.err = err
		}
		return nil, err
	}
	n.plans = append(n.plans, TimedPlan{n.now, p})
	return p, nil
}
