package scrooge

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	planner "github.com/sluice-serving/sluice/papers/scrooge"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// contender is a system with its options, as one of those that a figure compares.
type contender struct {
	name, system string
	frontends    int           // of Nexus; 0 means its own number
	turnOff      time.Duration // how long dropped instances stay loaded; Nexus has none
	headroom     float64       // factor on the demand; 0 means the system's own
	within       float64       // part of the objective to plan with; 0 means the system's own
	// names of the placement and the router; "" means the system's own
	placement, router string
}

// planDelay is the simulated time of planning: about that of the paper's allocation (§4.3).
const planDelay = 100 * ms

// sessionRun is the result of a contender on a session.
type sessionRun struct {
	timeline
	bound float64 // mean $/h of the fractional program, below which no allocation is
	plans int
}

// overLeast returns the cost over the least possible.
func (s *sessionRun) overLeast() float64 { return s.mean() / s.bound }

// session adds a task that runs a contender on sessions of a graph, with every seed.
func (run *runner) session(e contender, g *graph) reproduce.Runs[*sessionRun] {
	return reproduce.Add(run.Runner, g.name+" by "+e.name, int(g.low+g.high), run.Seeds,
		func(ctx context.Context, seed uint64) (*sessionRun, error) {
			s, err := newSession(g, seed)
			if err != nil {
				return nil, err
			}
			out, err := run.simulate(ctx, e, s, seed)
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", g.name, seed, err)
			}
			return out, nil
		})
}

func (run *runner) simulate(ctx context.Context, e contender, s *session, seed uint64) (*sessionRun, error) {
	w, err := newEnvironment(s.graph, 0, run.Solver)
	if err != nil {
		return nil, err
	}
	c := &experiment.Case{
		Env: w, Span: run.span, FirstRates: s.stageRates(0)[:1], PlanDelay: planDelay, NoReport: true,
		Source:  func(uint64) workload.Source { return workload.Limit(s.frames(), serving.Time(run.span), -1) },
		Clients: func(uint64) []workload.Client { return s.workloadClients() },
		Content: func(seed uint64) truth.Content { return s.content(seed) },
	}
	if c.System, err = systems.Get(e.system); err != nil {
		return nil, err
	}
	c.System.Options.Pipelines.Frontends = e.frontends
	c.System.Options.Following.TurnOff = e.turnOff
	if e.headroom > 0 {
		c.System.Options.Planning.Headroom = e.headroom
	}
	if e.within > 0 {
		c.System.Options.Pipelines.Within = e.within
	}
	c.System.Options.Pipelines.Placement = cmp.Or(e.placement, c.System.Options.Pipelines.Placement)
	c.System.Router = cmp.Or(e.router, c.System.Router)
	k := newWatcher(w.Spec, int(run.span.Seconds()))
	c.OnStep, c.OnOutcome = k.onStep, k.onOutcome
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	k.charge(serving.Time(run.span))
	return &sessionRun{timeline: k.timeline, plans: len(r.Plans), bound: s.boundCost(run.span)}, nil
}

// boundCost returns a lower bound of the mean cost of a session's first part, in $/h: the cost of the fractional
// program, in which a machine costs as much as is used of it and starting takes no time.
func (s *session) boundCost(span time.Duration) (mean float64) {
	for t := serving.Time(0); t < serving.Time(span); t = t.Add(time.Second) {
		if asked := s.stageRates(t); asked[0] > 0 {
			mean += planner.Bound(testbedMarket.problem(s.graph, s.graph.objective, asked)) / span.Seconds()
		}
	}
	return mean
}
