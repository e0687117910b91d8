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

// costs allocates, exactly, for every decision of sessions of a graph: with an objective, with or without spatial
// multiplexing.
func (l *lab) costs(g *graph, objective time.Duration, single bool) *reproduce.Task {
	key := fmt.Sprintf("sessions of %s, %v", g.name, objective)
	if single {
		key += ", one batch at a time"
	}
	return l.Do(key, 3, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		s, err := newSession(g, seed)
		if err != nil {
			return nil, err
		}
		out := &sessionCost{rates: make([]float64, len(g.stages)), reserved: make([]float64, len(g.stages))}
		all, whole := s.decisions(), 0.0
		for _, d := range all {
			whole += d.held.Seconds()
		}
		for _, d := range all {
			p, part := testbed.problem(g, objective, d.asked), d.held.Seconds()/whole
			if single {
				p = p.Only(planner.OneSlot)
			}
			a, err := exactly(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s within %v: %w", g.name, objective, err)
			}
			out.cost += a.Cost * part
			out.bound += planner.Bound(p) * part
			for k := range g.stages {
				out.rates[k] += d.asked[k] * part
				out.reserved[k] += used(p, a, k, -1) * part
			}
		}
		for k := range out.rates {
			out.rates[k] /= max(out.reserved[k], 1e-9)
		}
		return out, nil
	})
}

// each takes a number from a task of every seed.
func each[T any](t *reproduce.Task, of func(T) float64) (out []float64) {
	for _, d := range t.Done {
		out = append(out, of(d.(T)))
	}
	return out
}

// over divides seed by seed.
func over(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
