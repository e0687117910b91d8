package worlds

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// planDelay is how long a planner that is asked during a run takes, as 'sluice simulate' has it.
const planDelay = 500 * time.Millisecond

// place is a world as the program reads it: a configuration, with what its planners believe and how its machines are.
type place struct {
	*worlds.World
	tables   *config.Resolved
	believed *profile.Table
	machines *truth.Table
}

// open reads a world from its file, as every command does. The second result says why it is refused; "" where it is
// not.
func open(seed uint64, number int) (*place, string, error) {
	return read(worlds.Generate(seed, number))
}

func read(w *worlds.World) (*place, string, error) {
	f, err := config.Parse([]byte(w.ConfigFile()), w.Name)
	if err != nil {
		return nil, "", err
	}
	p := &place{World: w}
	if p.machines, err = truth.NewTable(w.Spec, w.Measurements, truth.Lognormal, nil); err != nil {
		return nil, "", err
	}
	if lengths := profile.NewStretches(w.Spec, w.Measurements); lengths != nil {
		p.machines.Stretch = lengths.Latency
	}
	if p.believed, err = profile.NewTable(w.Spec, w.Measurements, profile.P95); err != nil {
		return nil, "", err
	}
	refused := ""
	if p.tables, err = f.Resolve(); err != nil {
		refused = short(err)
	} else {
		for s := range w.Spec.Stages { // a file has them in its profile
			p.tables.Spec.Stages[s].Confidences = w.Spec.Stages[s].Confidences
		}
		for a := range w.Spec.Apps {
			p.tables.Spec.Apps[a].QueueLimit = w.Spec.Apps[a].QueueLimit
		}
	}
	return p, refused, nil
}

// source returns the world's load, from the start.
func (p *place) source() workload.Source {
	src, err := p.Workload.Source(p.App)
	if err != nil {
		panic("worlds: a load that cannot be: " + err.Error()) // worlds are validated when they are made
	}
	return src
}

// limit is the bound of a world: with machines as fast as they are on average.
type limit struct {
	utility, inTime float64
	// cost is in $/h, for 99 % of each app's queries in time and the targets; NaN where nothing is rented and where no
	// money keeps them.
	cost float64
}

// costLate is the share of each app's queries that need not be in time for the bound on money.
const costLate = 0.01

// limit computes the bound.
func (p *place) limit(ctx context.Context, solver milp.Solver) (*limit, error) {
	r, err := p.bound(ctx, solver, nil, bounds.Fluid())
	if err != nil {
		return nil, err
	}
	out := &limit{utility: r.Utility, inTime: r.InTime, cost: math.NaN()}
	rent := bounds.Rented(p.Spec)
	if rent == nil {
		return out, nil
	}
	rent.Late = costLate
	for a := range p.Spec.Apps {
		rent.Target = append(rent.Target, p.Spec.Apps[a].AccuracyTarget)
	}
	cost, err := bound.Cost(ctx, solver, bounds.Model(p.Spec, p.machines), p.queries(), *rent,
		bounds.Fluid())
	switch {
	case errors.Is(err, bound.ErrTooLittle):
		return out, nil
	case err != nil:
		return nil, err
	}
	out.cost = cost
	return out, nil
}

// bound computes the bound on utility. speed is by device type how much faster than on average batches were; nil for
// nothing.
func (p *place) bound(ctx context.Context, solver milp.Solver, speed []float64, o bound.Options) (*bound.Result,
	error) {
	w := bounds.Model(p.Spec, p.machines)
	w.Speed = speed
	return bound.Utility(ctx, solver, w, p.queries(), o)
}

func (p *place) queries() []bound.Query {
	watch := bounds.NewWatch(p.Spec, p.machines)
	for src := watch.Source(p.source()); ; {
		if _, more := src.Next(); !more {
			return watch.Queries()
		}
	}
}

// result is a run of a system in a world.
type result struct {
	refused         string // why there is no run
	utility, inTime float64
	late            float64 // share of the queries that were answered late
	cost            float64 // $/h
	wasted          float64 // share of the machine time, of queries that missed their objective
	below           float64 // by how much the answers of some app are below its accuracy target, at most
	speed           []float64
	tolerance       float64
}

// run simulates a system in the world. A system that refuses the world is no error.
func (p *place) run(ctx context.Context, s systems.System, solver milp.Solver, policies ramsis.Store) (*result, error) {
	trials := experiment.Trials{System: s, Known: plan.Known{Measurements: p.Measurements, Profile: p.believed}}
	known := systems.PlannerInputs{
		Profile: p.believed, Proposed: p.tables.Proposed, Solver: solver, Policies: policies, Trials: trials,
		Unpromised: true,
	}
	for _, i := range p.tables.Placement {
		known.Placement = append(known.Placement, static.Instance(i))
	}
	planner, err := s.NewPlanner(known)
	if err != nil {
		return &result{refused: short(err)}, ctx.Err()
	}
	first, err := planner.Plan(ctx, plan.Request{Spec: p.tables.Spec, Rates: p.Demand})
	if err != nil {
		return &result{refused: short(err)}, ctx.Err()
	}
	e, err := s.Engine(p.tables.Spec, p.believed, planner.Provides())
	if err != nil {
		return &result{refused: short(err)}, ctx.Err()
	}
	watch := bounds.NewWatch(p.tables.Spec, p.machines.WithRand(workload.Rand(p.Seed, "service times")))
	recorder := report.NewRecorder(p.apps(), report.Options{})
	out := &result{}
	ran, err := sim.Run(sim.Config{
		Spec: p.tables.Spec, Engine: e, Truth: watch.Machines(), Source: watch.Source(p.source()), Initial: first,
		Warm: true, Planner: planner, PlanDelay: planDelay, Recorder: recorder,
	})
	if err != nil {
		return &result{refused: short(err)}, ctx.Err()
	}
	made := recorder.Report(report.Meta{Duration: p.Workload.Duration(), Usage: &ran.Usage})
	for a := range made.Apps {
		if x := made.Apps[a].Missed; x != nil {
			out.below = max(out.below, *x)
		}
	}
	all := made.Overall
	out.inTime, out.late = float64(all.InTime)/float64(max(all.Offered, 1)), float64(all.Late)/
		float64(max(all.Offered, 1))
	out.speed, out.tolerance = watch.Model().Speed, watch.Tolerance()
	if all.Utility != nil {
		out.utility = *all.Utility
	}
	if all.WastedRatio != nil {
		out.wasted = *all.WastedRatio
	}
	if all.CostPerHour != nil {
		out.cost = *all.CostPerHour
	}
	return out, ctx.Err()
}

func (p *place) apps() []report.AppInfo {
	out := make([]report.AppInfo, len(p.Spec.Apps))
	for a := range out {
		app := &p.Spec.Apps[a]
		out[a] = report.AppInfo{
			Name: app.Name, BestAccuracy: p.Spec.BestAccuracy(serving.AppID(a)), SLO: app.SLO, Weight: app.Weight,
			Target: app.AccuracyTarget,
		}
	}
	return out
}

// longestReason is how long the text of a refusal is at most.
const longestReason = 110

// short is the first line of an error.
func short(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if r := []rune(text); len(r) > longestReason {
		text = string(r[:longestReason-1]) + "…"
	}
	return text
}
