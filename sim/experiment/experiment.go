// Package experiment runs simulations side by side: a case is a system in a world under a load, a sweep is many cases.
// It is what reproductions and capacity searches are made of.
package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
)

// Environment is what a case runs in: what there is, what is believed of it and how it really behaves.
type Environment struct {
	Spec    *serving.Spec
	Beliefs profile.Profile // nil for none, with systems that learn
	// Truth makes the machines of one run, which draw from the given source.
	Truth   func(*rand.Rand) (truth.Model, error)
	Solver  milp.Solver
	Batches []int // that may be planned; nil for any
	// Policies keeps what planners make in advance; nil keeps nothing.
	Policies ramsis.Store
	Apps     []report.AppInfo
}

// Known is what planners know of the world.
func (env *Environment) Known() systems.World {
	believed := env.Beliefs
	if believed == nil {
		believed = profile.NewLearned(env.Spec, nil)
	}
	return systems.World{Profile: believed, Solver: env.Solver, Batches: env.Batches, Policies: env.Policies}
}

// Case is one simulation.
type Case struct {
	Env    *Environment
	System systems.System
	// Scaler takes the place of the system's; nil leaves it.
	Scaler scale.Scaler
	// Source makes the queries of a run from its seed.
	Source func(seed uint64) workload.Source
	// Clients are the clients of the queries' sessions, from the seed; nil for none.
	Clients func(seed uint64) []workload.Client
	// Content is what is in the queries, from the seed; nil for what the apps' fan-outs say.
	Content func(seed uint64) truth.Content
	// Span is for how long queries are offered.
	Span time.Duration
	// FirstRates is the demand, by AppID in queries/s, that the first plan is made for.
	FirstRates []float64
	// Initial takes the place of the first plan; nil makes one.
	Initial *plan.Plan
	// PlanDelay is how long a plan takes to be made.
	PlanDelay time.Duration
	Record    report.Options
	// NoReport leaves Run.Report nil, where Observe sees all that is wanted.
	NoReport bool
	// OnOutcome sees how every query ended, besides the report; nil for none.
	OnOutcome func(*report.Outcome)
	// OnStep sees every step, before its outcomes are observed; nil for none. The slices must not be kept.
	OnStep func(now serving.Time, in []engine.Input, out []engine.Decision)
}

// Run is what a case led to.
type Run struct {
	Report *report.Report
	Plans  []TimedPlan
	sim.Result
}

// TimedPlan is a plan and when it was asked for.
type TimedPlan struct {
	At   serving.Time
	Plan *plan.Plan
}

// Run simulates the case with one seed.
func (c *Case) Run(ctx context.Context, seed uint64) (*Run, error) {
	env := c.Env
	planner, err := c.System.NewPlanner(env.Known())
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
		Spec: env.Spec, Engine: e, Truth: machines, Source: c.Source(seed), Initial: initial, Warm: true, Planner: noted,
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

// Engine builds a fresh engine of the case's system, for plans that carry the given sections.
func (c *Case) Engine(provides plan.Sections) (*engine.Engine, error) {
	if c.Scaler == nil {
		return c.System.Engine(c.Env.Spec, c.Env.Beliefs, provides)
	}
	return c.System.EngineWith(c.Env.Spec, c.Env.Beliefs, provides, c.Scaler)
}

// recordingPlanner is a planner that remembers what it answered. A plan that fails is an error of the run: a system that goes on
// with the plan before would pass for better or worse than it is.
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
