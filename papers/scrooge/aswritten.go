package scrooge

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/internal/algo/milp"
)

// AsWritten allocates as the paper does (§3.3). One program counts every machine as full (2a-2d). Another one follows
// for each machine that is not full, with its longer wait (Eq. 3). Details that the text leaves open are settled as
// follows:
//
//   - 2b has the product of x and t. Here t <= r*x, and the sum of t is r: the same.
//   - l is in whole milliseconds in the paper, in fractions here.
//   - A module has one mode in the first program, and 2c stands there once more with the mean of W over the module's
//     rate. Some optimum has one mode per module, the cheapest that is fast enough, and 2c implies the other. Solvers
//     need both to be fast.
//   - Modes that neither cost less nor are faster than another are left out of the first program; its optimum stays.
//   - The second program fixes the rate of the partial machine to what full ones leave. Then 1/t is a number for each
//     mode, and a binary variable chooses the mode: the program is linear, and no solver approximates. It chooses among
//     all types, as the paper's example does (Table 3: X full, Y partial), where the text says "on this machine type".
//   - Modules are refined in the graph's order. Each gets what the others leave: those before it with their result,
//     those after it as if their machines were full.
//   - If no mode is left, full machines are removed, one by one, until machines of one mode can share the remaining
//     rate; the cheapest such mode is taken. If there is none either, Greedy allocates the whole graph.
//
// The error is *Infeasible, or ctx's or the solver's.
func AsWritten(ctx context.Context, p *Problem, s milp.Solver) (*Allocation, error) {
	g, err := p.checked()
	if err != nil {
		return nil, err
	}
	w := &paperMethod{p: p, g: g, solver: s, latency: make([]time.Duration, len(p.Modules))}
	for i := range p.Modules {
		w.modules = append(w.modules, p.module(i))
	}
	rates, bound, err := w.first(ctx)
	if err != nil {
		return nil, err
	}
	if rates == nil {
		return nil, p.infeasible(g)
	}
	a := &Allocation{Modules: make([]Allocated, len(p.Modules))}
	for i := range w.modules {
		uses, err := w.refine(ctx, i, rates[i])
		if err != nil {
			return nil, err
		}
		if uses == nil && p.Modules[i].Rate > 0 {
			return Greedy(p)
		}
		a.Modules[i].Uses = uses
	}
	err = a.finish(p, g)
	a.Bound = min(bound, a.Cost)
	a.Proven = a.Bound >= a.Cost*(1-sumTolerance)
	return a, err
}

// paperMethod is the method at work.
type paperMethod struct {
	p       *Problem
	g       *graph
	solver  milp.Solver
	modules []*module
	latency []time.Duration // by module: worst latency of its full machines, later of all its machines
}

// load is the part of a module's rate that goes to a mode.
type load struct {
	mode int
	rate float64
}

// objectiveMargin covers the solver's tolerance, a nanosecond per row.
const objectiveMargin = 100 * time.Nanosecond

// first solves 2a-2d. It returns the modes of every module with their rates, nil where nothing is feasible, and a bound
// on the cost.
func (w *paperMethod) first(ctx context.Context) ([][]load, float64, error) {
	x := &milp.Program{}
	n := len(w.modules)
	begins, modes, shares := make([]int, n), make([][]int, n), make([][]int, n)
	for i := range w.modules {
		begins[i] = x.Column(milp.Column{Upper: milli(w.p.SLO)})
	}
	for i, m := range w.modules {
		steps, of := m.fractional(w.p.SLO)
		if len(steps) == 0 {
			return nil, 0, nil
		}
		if m.rate == 0 {
			w.addPrecedence(x, begins, i)
			continue
		}
		var sum, mean, one []milp.Term
		for k, at := range steps {
			use := x.Column(milp.Column{Upper: 1, Integer: true})
			share := x.Column(milp.Column{Objective: at.cost, Upper: 1}) // t/r
			x.Row(-milp.Inf, 0, milp.Term{Column: share, Coef: 1}, milp.Term{Column: use, Coef: -1})
			sum = append(sum, milp.Term{Column: share, Coef: 1})
			modes[i], shares[i] = append(modes[i], of[k]), append(shares[i], share)
			one = append(one, milp.Term{Column: use, Coef: 1})
			mean = append(mean, milp.Term{Column: share, Coef: milli(at.latency)})
			w.addPrecedence(x, begins, i, milp.Term{Column: use, Coef: milli(at.latency)})
		}
		x.Row(1, 1, sum...)
		x.Row(1, 1, one...)
		w.addPrecedence(x, begins, i, mean...)
	}
	out, err := w.solver.Solve(ctx, x, milp.Limits{})
	if err != nil {
		return nil, 0, err
	}
	switch out.Status {
	case milp.Infeasible:
		return nil, 0, nil
	case milp.Optimal:
	default:
		return nil, 0, fmt.Errorf("scrooge: the first program ended as %v, want an optimum", out.Status)
	}
	rates := make([][]load, n)
	for i, m := range w.modules {
		for k, c := range shares[i] {
			if share := out.Values[c]; share > rounding {
				rates[i] = append(rates[i], load{modes[i][k], share * m.rate})
				w.latency[i] = max(w.latency[i], m.modes[modes[i][k]].full)
			}
		}
		balance(rates[i], m.rate)
	}
	return rates, out.Bound, nil
}

// rounding is the share of a rate that is the solver's noise.
const rounding = 1e-7

// balance scales loads to sum to a rate.
func balance(loads []load, rate float64) {
	sum := 0.0
	for _, l := range loads {
		sum += l.rate
	}
	for k := range loads {
		loads[k].rate *= rate / sum
	}
}

// addPrecedence adds the rows by which the modules that module i feeds begin after it (2c), and the objective is kept
// (2d). took is the time of module i.
func (w *paperMethod) addPrecedence(x *milp.Program, begins []int, i int, took ...milp.Term) {
	for _, n := range w.p.Modules[i].Next {
		terms := append([]milp.Term{{Column: begins[i], Coef: 1}, {Column: begins[n], Coef: -1}}, took...)
		x.Row(-milp.Inf, 0, terms...)
	}
	if len(w.p.Modules[i].Next) == 0 {
		x.Row(-milp.Inf, milli(w.p.SLO-objectiveMargin), append([]milp.Term{{Column: begins[i], Coef: 1}}, took...)...)
	}
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// refine gives module i its machines: in every mode the full ones, and one for the remaining rate. It returns nil when
// there are none.
func (w *paperMethod) refine(ctx context.Context, i int, loads []load) ([]Use, error) {
	m := w.modules[i]
	before, behind := dag.Around(w.g.next, w.latency)
	within := w.p.SLO - before[i] - behind[i]
	var uses []Use
	for _, l := range loads {
		x := &m.modes[l.mode]
		full := math.Floor(l.rate/x.cap + remainderTolerance)
		left := l.rate - full*x.cap
		if left > remainderTolerance*m.rate {
			mode, err := w.partial(ctx, m, left, within)
			if err != nil {
				return nil, err
			}
			for mode < 0 { // no mode carries so little in time
				if mode = m.cheapestMode(left, within); mode >= 0 {
					break
				}
				if full--; full < 0 {
					return nil, nil
				}
				left += x.cap
			}
			uses = append(uses, m.uses(composition{remainderMode: mode, remainder: left})...)
		}
		if full > 0 {
			uses = append(uses, Use{Mode: l.mode, Count: int(full), Rate: x.cap})
		}
	}
	w.latency[i] = 0
	for _, u := range uses {
		w.latency[i] = max(w.latency[i], m.modes[u.Mode].WorstLatency(min(u.Rate, m.modes[u.Mode].cap)))
	}
	return uses, nil
}

// partial solves 2a-2d with Eq. 3 for one machine: the cheapest mode that carries a rate in time, or -1.
func (w *paperMethod) partial(ctx context.Context, m *module, rate float64, within time.Duration) (int, error) {
	x := &milp.Program{}
	var modes []int
	var one []milp.Term
	for k := range m.modes {
		if mode := &m.modes[k]; mode.cap*(1+remainderTolerance) >= rate {
			use := x.Column(milp.Column{Objective: rate * mode.price, Upper: 1, Integer: true})
			x.Row(-milp.Inf, milli(within), milp.Term{Column: use, Coef: milli(mode.sharedLatency(rate))})
			modes, one = append(modes, k), append(one, milp.Term{Column: use, Coef: 1})
		}
	}
	if len(modes) == 0 {
		return -1, nil
	}
	x.Row(1, 1, one...)
	out, err := w.solver.Solve(ctx, x, milp.Limits{})
	if err != nil || out.Status != milp.Optimal {
		return -1, err
	}
	for n, k := range modes {
		if out.Values[one[n].Column] > 0.5 && m.modes[k].sharedLatency(rate) <= within {
			return k, nil
		}
	}
	return -1, nil
}
