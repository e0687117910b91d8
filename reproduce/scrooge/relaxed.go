package scrooge

import (
	"context"
	"fmt"
	"time"

	planner "github.com/sluice-serving/sluice/planner/scrooge"
	"github.com/sluice-serving/sluice/reproduce"
)

// sessionCost is what the allocations of a session come to.
type sessionCost struct {
	cost     float64   // mean $/h, each machine counted by the part of it that is used
	rates    []float64 // by stage: items/s that a machine in use carries
	bound    float64   // mean $/h of the bound
	reserved []float64 // by stage: mean machines in use
}

// costTask allocates, exactly, for every decision of sessions of a graph: with an objective, with or without spatial
// multiplexing.
func (run *runner) costTask(g *graph, objective time.Duration, single bool) *reproduce.Task {
	key := fmt.Sprintf("sessions of %s, %v", g.name, objective)
	if single {
		key += ", one batch at a time"
	}
	return run.AddTask(key, 3, run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
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
				p = p.Only(planner.Alone)
			}
			a, err := exact(ctx, p)
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
