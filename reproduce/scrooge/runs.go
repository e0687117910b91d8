package scrooge

import (
"github.com/sluice-serving/sluice/engine"
"os"
"strconv"
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
	c.System.Scaler = "complexity"
	c.System.Options.Following.Change, _ = strconv.ParseFloat(os.Getenv("CH"), 64)
	c.System.Options.Planning.Headroom, _ = strconv.ParseFloat(os.Getenv("HR"), 64)
	if e.frontends > 0 {
		c.System.Options.Pipelines.Frontends = e.frontends
	}
	if e.turnOff >= 0 {
		c.System.Options.Following.TurnOff = e.turnOff
	}
	k := newWatcher(w.Spec, int(l.span.Seconds()))
	c.Watch, c.Observe = k.watch, k.observe
	if os.Getenv("DBG") != "" {
		c.Watch = func(now serving.Time, in []engine.Input, out []engine.Decision) {
			k.watch(now, in, out)
			for i := range in {
				if in[i].Kind == engine.PlanReady {
					p := in[i].Plan
					u := map[string]string{}
					for _, x := range p.Instances {
						u[w.Spec.Workers[x.Worker].Name] += fmt.Sprintf(" %s b%d e%d %.2f h%v", w.Spec.Stages[x.Stage].Name, x.Variants[0].Limit, x.Slots, x.Share, x.Hold)
					}
					fmt.Println("PLAN", now, p.Forecast.CostPerHour, p.Demand, p.Capacity, p.Fans, p.Ballooning, p.Budgets, p.Shed, u)
				}
			}
			for i := range out {
				if d := &out[i]; d.Kind == engine.RequestPlan {
					b := w.Beliefs
					fmt.Print("ASK ", now, d.Rates, " fans ", d.Fans)
					if d.Beliefs != nil {
						for v := range w.Spec.Variants {
						fmt.Printf(" balloon %.3f", float64(d.Beliefs.Latency(serving.VariantID(v), 0, 1, 1))/float64(b.Latency(serving.VariantID(v), 0, 1, 1)))
						}
					}
					fmt.Println()
				}
			}
		}
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	return &served{series: k.series, plans: len(r.Plans)}, nil
}
