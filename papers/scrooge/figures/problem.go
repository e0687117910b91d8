package scrooge

import (
	"context"
	"time"

	planner "github.com/sluice-serving/sluice/papers/scrooge"
	"github.com/sluice-serving/sluice/serving"
)

// market is a choice of machine types. faster returns the speed of type t for a model, relative to the profiled type; 0
// means that it cannot run it.
type market struct {
	prices []float64 // $/h by type
	faster func(m *model, t int) float64
}

// testbedMarket is the paper's: P100, V100 and CPU workers.
var testbedMarket = market{
	prices: []float64{machineTypes[p100].price, machineTypes[v100].price, machineTypes[cpu].price},
	faster: func(m *model, t int) float64 {
		switch {
		case m.cpu != (t == cpu):
			return 0
		case t == v100:
			return m.v100
		}
		return 1
	},
}

// wideMarket has 30 types: four kinds of accelerators on six hosts each, and six kinds of CPU workers. The fastest
// accelerator has 2.41 times the throughput of the slowest, and the dearest machine with one costs 8.4 times the
// cheapest (Table 1). Price and speed are not in proportion.
var wideMarket = func() market {
	accelerators := []struct{ price, faster float64 }{{0.9, 0.498}, {1.1, 0.62}, {2.07, 1}, {3.06, 1.2}}
	hosts := []struct {
		price, faster float64
	}{{0.9, 0.92}, {1, 1}, {1.15, 1.03}, {1.35, 1.05}, {1.7, 1.06}, {2.22, 1.07}}
	var m market
	var speeds []float64
	for _, a := range accelerators {
		for _, h := range hosts {
			m.prices, speeds = append(m.prices, a.price*h.price), append(speeds, a.faster*h.faster)
		}
	}
	with := len(m.prices)
	for k := range 6 {
		m.prices, speeds = append(m.prices, 0.83*(0.7+0.12*float64(k))), append(speeds, 0.8+0.1*float64(k))
	}
	m.faster = func(x *model, t int) float64 {
		if x.cpu != (t >= with) {
			return 0
		}
		return speeds[t]
	}
	return m
}()

// problem returns the allocation problem of a graph whose stages receive the given rates, in items/s.
func (m *market) problem(g *graph, objective time.Duration, asked []float64) *planner.Problem {
	p := &planner.Problem{SLO: objective, Prices: m.prices}
	for k, s := range g.stages {
		x := planner.Module{Rate: asked[k]}
		for _, e := range s.next {
			x.Next = append(x.Next, e.to)
		}
		for t := range m.prices {
			if faster := m.faster(s.model, t); faster > 0 {
				for _, q := range s.model.points(0, serving.DeviceTypeID(t), faster) {
					x.Modes = append(x.Modes, planner.Mode{Type: t, Batch: q.Items, Slots: q.Concurrency,
						Latency: q.Mean})
				}
			}
		}
		p.Modules = append(p.Modules, x)
	}
	return p
}

// method is a way to allocate.
type method struct {
	name   string
	by     planner.Method
	solves bool // solves integer programs
}

// methods returns those of Figures 10 and 11; the last is ours.
func (run *runner) methods() []method {
	return []method{
		{"as written", func(ctx context.Context, p *planner.Problem) (*planner.Allocation, error) {
			return planner.AsWritten(ctx, p, run.Solver)
		}, true},
		{"greedy", func(_ context.Context, p *planner.Problem) (*planner.Allocation, error) {
			return planner.Greedy(p)
		}, false},
		{"exact", exact, false},
	}
}

// brute tries all allocations in few modes. What it cannot do, it leaves out.
func brute(ctx context.Context, p *planner.Problem) (*planner.Allocation, error) {
	if _, err := planner.BruteForce(ctx, p.Only(fewModes)); err != nil {
		return nil, ctx.Err() // too large, or nothing is in time
	}
	return &planner.Allocation{}, nil
}

func exact(_ context.Context, p *planner.Problem) (*planner.Allocation, error) {
	return planner.Exact(p)
}

// machinesUsed returns how many machines of type of an allocation uses for a module, counting partly used ones in part.
// Negative numbers mean all modules and all types.
func machinesUsed(p *planner.Problem, a *planner.Allocation, module, of int) (n float64) {
	for i := range a.Modules {
		for _, u := range a.Modules[i].Uses {
			if m := &p.Modules[i].Modes[u.Mode]; (of < 0 || m.Type == of) && (module < 0 || i == module) {
				n += float64(u.Count) * u.Rate / m.Rate()
			}
		}
	}
	return n
}
