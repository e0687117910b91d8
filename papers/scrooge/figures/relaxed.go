package scrooge

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	planner "github.com/sluice-serving/sluice/papers/scrooge"
)

// sessionCost summarises the allocations of a session.
type sessionCost struct {
	cost     float64   // mean $/h; partly used machines count in part
	rates    []float64 // by stage: items/s of a machine in use
	bound    float64   // mean bound, $/h
	reserved []float64 // by stage: mean number of machines in use
}

func (c *sessionCost) mean() float64 { return c.cost }

func scaleDuration(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// sessionMethods allocate for whole sessions; the second is the paper's.
var sessionMethods = []method{
	{name: "scrooge", by: exact},
	{name: "scrooge-written", by: func(ctx context.Context, p *planner.Problem) (*planner.Allocation, error) {
		return planner.AsWritten(ctx, p, nil)
	}},
}

// allocated adds a task that allocates for every decision of sessions of a graph. single means without spatial
// multiplexing.
func (run *runner) allocated(g *graph, objective time.Duration, m method, single bool) reproduce.Runs[*sessionCost] {
	key := fmt.Sprintf("sessions of %s by %s, %v", g.name, m.name, objective)
	if single {
		key += ", one batch at a time"
	}
	return reproduce.Add(run.Runner, key, 3, run.Seeds, func(ctx context.Context, seed uint64) (*sessionCost, error) {
		s, err := newSession(g, seed)
		if err != nil {
			return nil, err
		}
		out := &sessionCost{rates: make([]float64, len(g.stages)), reserved: make([]float64, len(g.stages))}
		all, whole := s.decisions(), 0.0
		for _, d := range all {
			whole += d.duration.Seconds()
		}
		for _, d := range all {
			p, part := testbedMarket.problem(g, objective, d.rates), d.duration.Seconds()/whole
			if single {
				p = p.Only(planner.OneSlot)
			}
			a, err := m.by(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s within %v: %w", g.name, objective, err)
			}
			out.cost += a.Cost * part
			out.bound += planner.Bound(p) * part
			for k := range g.stages {
				out.rates[k] += d.rates[k] * part
				out.reserved[k] += machinesUsed(p, a, k, -1) * part
			}
		}
		for k := range out.rates {
			out.rates[k] /= max(out.reserved[k], 1e-9)
		}
		return out, nil
	})
}
