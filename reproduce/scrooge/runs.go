package scrooge

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
	"github.com/sluice-serving/sluice/workload"
)

// entrant is a system in an experiment.
type entrant struct {
	name, system string
	frontends    int           // of Nexus
	turnOff      time.Duration // how long instances stay that a plan has dropped; negative leaves the system's own
}

// planDelay is how long a plan takes from question to answer: about what the paper's allocation does (§4.3).
const planDelay = 100 * ms

// served is what a system made of a session.
type served struct {
	series
	planned float64 // mean $/h of the plans in force, each machine counted by the part of it that is used
	bound   float64 // mean $/h that no allocation is below, for what is really asked
	plans   int
}

// serves has a system serve sessions of a graph.
func (l *lab) serves(e entrant, g *graph) *reproduce.Task {
	return l.Do(fmt.Sprintf("%s by %s", g.name, e.name), int(g.low+g.high), l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return l.serve(ctx, e, g, seed)
	})
}

func (l *lab) serve(ctx context.Context, e entrant, g *graph, seed uint64) (*served, error) {
	s, err := newSession(g, seed)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(g, 0, l.Solver)
	if err != nil {
		return nil, err
	}
	c := &experiment.Case{
		World: w, Span: span, First: s.asks(0)[:1], PlanDelay: planDelay, Unreported: true,
		Source:  func(uint64) workload.Source { return workload.Limit(s.frames(), serving.Time(l.span), -1) },
		Stays:   func(uint64) []workload.Stay { return s.stays() },
		Content: func(seed uint64) truth.Content { return s.content(seed) },
	}
	if c.System, err = systems.Get(e.system); err != nil {
		return nil, err
	}
	if e.frontends > 0 {
		c.System.Options.Planning.Frontends = e.frontends
	}
	if e.turnOff >= 0 {
		c.System.Options.Following.TurnOff = e.turnOff
	}
	k := newWatcher(w.Spec, int(l.span.Seconds()))
	c.Watch, c.Observe = k.watch, k.observe
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	return &served{series: k.series, plans: len(r.Plans)}, nil
}
