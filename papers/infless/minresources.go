package infless

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Goal is what MinResources minimises.
type Goal uint8

const (
	// Allocated resources are those that instances take.
	Allocated Goal = iota
	// Occupied resources are those of every machine that runs an instance (Eq. 2).
	Occupied
)

// MinResources returns the least resources, in per cent of an accelerator with threads weighed by beta, that carry all
// rates of a request from scratch (Eqs. 2 to 9). Lower bounds are kept: those of a function's instances add up to no
// more than its load, so that batches fill in time. If limits end the search early, least is the best value found and
// bound is proven to be at most the least value. Both are +Inf when no plan carries the rates. Machines that are taken
// as a whole are an error.
//
// It is an integer program with a column for each configuration and accelerator, for small clusters.
func MinResources(ctx context.Context, p *packing.Planner, solver milp.Solver, r plan.Request, goal Goal,
	limits milp.Limits) (least, bound float64, err error) {
	x, err := p.Read(plan.Request{Spec: r.Spec, Rates: r.Rates, Mixes: r.Mixes, Beliefs: r.Beliefs})
	if err != nil {
		return 0, 0, err
	}
	m := &milp.Program{}
	machines := machinesOf(x, m, goal)
	for k := range x.Functions {
		f := &x.Functions[k]
		if f.Load <= 0 {
			continue
		}
		if err := columns(f, m, machines, goal); err != nil {
			return 0, 0, err
		}
	}
	for s := range machines {
		machines[s].rows(m)
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

// machine is a server in the program.
type machine struct {
	*packing.Server
	threadsTaken, memoryTaken []milp.Term
	percentsTaken             [][]milp.Term // by accelerator
	used                      int           // column that says whether the machine runs anything; -1 for none
}

func machinesOf(x *packing.State, m *milp.Program, goal Goal) []machine {
	out := make([]machine, len(x.Cluster.Servers))
	for s := range out {
		y := &x.Cluster.Servers[s]
		out[s] = machine{Server: y, percentsTaken: make([][]milp.Term, len(y.Percents)), used: -1}
		if goal == Occupied {
			out[s].used = m.Column(milp.Column{Objective: y.Group.Left, Upper: 1, Integer: true})
		}
	}
	return out
}

// columns adds the numbers of a function's instances on every accelerator, and the rows by which they carry its load
// and fill their batches.
func columns(f *packing.Function, m *milp.Program, machines []machine, goal Goal) error {
	var ups, lows []milp.Term
	for k := range f.Configurations {
		c := &f.Configurations[k]
		if c.Whole {
			return errors.New("the least resources of machines that are taken as a whole: name their parts")
		}
		for s := range machines {
			places := 1
			if c.Percent > 0 {
				places = len(machines[s].Percents)
			}
			for a := range places {
				j := m.Column(milp.Column{Upper: math.Ceil(f.Load / c.Up), Integer: true})
				if goal == Allocated {
					m.Columns[j].Objective = c.Resources
				}
				ups = append(ups, milp.Term{Column: j, Coef: c.Up})
				if c.Batch > 1 {
					lows = append(lows, milp.Term{Column: j, Coef: c.Low})
				}
				machines[s].take(j, a, c)
			}
		}
	}
	m.Row(f.Load, milp.Inf, ups...)
	m.Row(-milp.Inf, f.Load, lows...)
	return nil
}

// take notes what an instance takes of the machine and of accelerator a.
func (y *machine) take(column, a int, c *packing.Configuration) {
	if c.Threads > 0 {
		y.threadsTaken = append(y.threadsTaken, milp.Term{Column: column, Coef: float64(c.Threads)})
	}
	if c.Percent > 0 {
		y.percentsTaken[a] = append(y.percentsTaken[a], milp.Term{Column: column, Coef: float64(c.Percent)})
	}
	if c.Memory > 0 {
		y.memoryTaken = append(y.memoryTaken, milp.Term{Column: column, Coef: float64(c.Memory) / memoryUnit})
	}
}

// rows adds the resources of the machine; those of one that may be unused count only if it is used.
func (y *machine) rows(m *milp.Program) {
	within := func(terms []milp.Term, most float64) {
		switch {
		case len(terms) == 0:
		case y.used < 0:
			m.Row(-milp.Inf, most, terms...)
		default:
			m.Row(-milp.Inf, 0, append(terms, milp.Term{Column: y.used, Coef: -most})...)
		}
	}
	within(y.threadsTaken, float64(y.Threads))
	for _, terms := range y.percentsTaken {
		within(terms, 100)
	}
	if y.Memory < packing.Unlimited {
		within(y.memoryTaken, float64(y.Memory)/memoryUnit)
	}
}
