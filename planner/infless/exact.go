package infless

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Carries bounds what a cluster carries (ours): the largest multiple of the request's rates that instances could serve
// at their upper bounds if they could be cut to any size and a machine's resources were those of all machines of its
// type together. The worker types count by themselves. No plan of the planner with these options carries more.
func (p *Planner) CapacityBound(ctx context.Context, solver milp.Solver, r plan.Request) (float64, error) {
	x, err := p.read(plan.Request{Spec: r.Spec, Rates: r.Rates, Mixes: r.Mixes, Beliefs: r.Beliefs})
	if err != nil {
		return 0, err
	}
	m := &milp.Program{Maximize: true}
	theta := m.Column(milp.Column{Objective: 1, Upper: milp.Inf})
	type total struct {
		device                           serving.DeviceTypeID
		n                                int
		threads, percent, memory, wholes []milp.Term
	}
	var types []total
	for _, s := range x.cluster.servers {
		at := 0
		for at < len(types) && types[at].device != s.device {
			at++
		}
		if at == len(types) {
			types = append(types, total{device: s.device})
		}
		types[at].n++
	}
	for k := range x.functions {
		f := &x.functions[k]
		if f.load <= 0 {
			continue
		}
		serves := []milp.Term{{Column: theta, Coef: -f.load}}
		for _, c := range f.configurations {
			for t := range types {
				y := &types[t]
				d := &x.spec.DeviceTypes[y.device]
				if c.Whole && c.Device != y.device || !c.Whole &&
					(c.Threads > d.Cores || c.Percent > 0 && d.Accelerators == 0) {
					continue
				}
				j := m.Column(milp.Column{Upper: milp.Inf})
				serves = append(serves, milp.Term{Column: j, Coef: c.Up})
				if c.Whole {
					y.wholes = append(y.wholes, milp.Term{Column: j, Coef: 1})
					continue
				}
				add := func(to *[]milp.Term, n float64) {
					if n > 0 {
						*to = append(*to, milp.Term{Column: j, Coef: n})
					}
				}
				add(&y.threads, float64(c.Threads))
				add(&y.percent, float64(c.Percent))
				add(&y.memory, float64(c.Memory)/(1<<20))
			}
		}
		m.Row(0, milp.Inf, serves...)
	}
	for t := range types {
		y := &types[t]
		d, n := &x.spec.DeviceTypes[y.device], float64(types[t].n)
		m.Row(-milp.Inf, n*float64(d.Cores), y.threads...)
		m.Row(-milp.Inf, n*100*float64(d.Accelerators), y.percent...)
		m.Row(-milp.Inf, n, y.wholes...)
		if d.MemoryBytes > 0 {
			m.Row(-milp.Inf, n*float64(d.MemoryBytes)/(1<<20), y.memory...)
		}
	}
	s, err := solver.Solve(ctx, m, milp.Limits{Relax: true})
	if err != nil {
		return 0, err
	}
	if s.Status != milp.Optimal {
		return 0, fmt.Errorf("what the cluster carries: the linear program ended as %v", s.Status)
	}
	return s.Objective, nil
}

// Goal is what Least makes as small as it can.
type Goal uint8

const (
	// Allocated resources are those that instances take.
	Allocated Goal = iota
	// Occupied resources are those of every machine that an instance is on (Eq. 2).
	Occupied
)

// Least returns the least resources, threads and per cent weighed by beta, with which all rates of a request are
// carried from scratch (Eqs. 2 to 9), by an integer program: how many instances of each configuration are on which
// accelerator of which machine. Batches fill in time: the lower bounds of a function add up to no more than its load.
// It is for small clusters. No plan at all is an infinity; limits end the search early, and then low bounds what has
// been found.
func (p *Planner) MinResources(ctx context.Context, solver milp.Solver, r plan.Request, goal Goal, limits milp.Limits) (least,
	low float64, err error) {
	x, err := p.read(plan.Request{Spec: r.Spec, Rates: r.Rates, Mixes: r.Mixes, Beliefs: r.Beliefs})
	if err != nil {
		return 0, 0, err
	}
	m := &milp.Program{}
	type machine struct {
		threads, memory []milp.Term
		percents        [][]milp.Term
		used            int
	}
	machines := make([]machine, len(x.cluster.servers))
	for s := range machines {
		y := &x.cluster.servers[s]
		machines[s] = machine{percents: make([][]milp.Term, len(y.percents)), used: -1}
		if goal == Occupied {
			machines[s].used = m.Column(milp.Column{Objective: y.group.left, Upper: 1, Integer: true})
		}
	}
	for k := range x.functions {
		f := &x.functions[k]
		if f.load <= 0 {
			continue
		}
		var ups, lows []milp.Term
		for _, c := range f.configurations {
			if c.Whole {
				return 0, 0, fmt.Errorf("the least resources of machines that are taken as a whole: name their parts")
			}
			for s := range machines {
				y := &machines[s]
				spots := 1
				if c.Percent > 0 {
					spots = len(y.percents)
				}
				for a := range spots {
					j := m.Column(milp.Column{Upper: math.Ceil(f.load / c.Up), Integer: true})
					if goal == Allocated {
						m.Columns[j].Objective = c.Resources
					}
					ups = append(ups, milp.Term{Column: j, Coef: c.Up})
					if c.Batch > 1 {
						lows = append(lows, milp.Term{Column: j, Coef: c.Low})
					}
					if c.Threads > 0 {
						y.threads = append(y.threads, milp.Term{Column: j, Coef: float64(c.Threads)})
					}
					if c.Percent > 0 {
						y.percents[a] = append(y.percents[a], milp.Term{Column: j, Coef: float64(c.Percent)})
					}
					if c.Memory > 0 {
						y.memory = append(y.memory, milp.Term{Column: j, Coef: float64(c.Memory) / (1 << 20)})
					}
				}
			}
		}
		m.Row(f.load, milp.Inf, ups...)
		m.Row(-milp.Inf, f.load, lows...)
	}
	for s := range machines {
		y, has := &machines[s], &x.cluster.servers[s]
		within := func(terms []milp.Term, most float64) {
			switch {
			case len(terms) == 0:
			case y.used < 0:
				m.Row(-milp.Inf, most, terms...)
			default:
				m.Row(-milp.Inf, 0, append(terms, milp.Term{Column: y.used, Coef: -most})...)
			}
		}
		within(y.threads, float64(has.threads))
		for _, terms := range y.percents {
			within(terms, 100)
		}
		if has.memory < unlimited {
			within(y.memory, float64(has.memory)/(1<<20))
		}
	}
	s, err := solver.Solve(ctx, m, limits)
	if err != nil {
		return 0, 0, err
	}
	switch s.Status {
	case milp.Optimal, milp.Feasible:
		return s.Objective, s.Bound, nil
	case milp.Infeasible:
		return milp.Inf, milp.Inf, nil
	}
	return 0, 0, fmt.Errorf("the least resources: the program ended as %v", s.Status)
}
