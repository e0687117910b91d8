package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/internal/algo/milp"
)

// AsWritten allocates as the paper does (§3.3). One program counts every machine as full (2a-2d). Another one follows
// for each machine that is not full, with its longer wait (Eq. 3). Details that the text leaves open are settled as
// follows:
//
//   - A module has one mode in the first program: some optimum has, the cheapest that is fast enough. So the program is
//     a choice of a step of every module's curve. Without a solver the search for it is Exact's, with the same optimum.
//   - With a solver, 2b has the product of x and t. Here t <= r*x, and the sum of t is r: the same. 2c stands there
//     once more with the mean of W over the module's rate, which makes solvers fast. l is in fractions of milliseconds.
//   - Modes that neither cost less nor are faster than another are left out of the first program; its optimum stays.
//   - The second program fixes the rate of the partial machine to what full ones leave. Then it only chooses a mode:
//     the cheapest that is in time, of a list. It chooses among all types, as the paper's example does (Table 3: X
//     full, Y partial), where the text says "on this machine type".
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
	modes, bound, err := w.first(ctx)
	if err != nil {
		return nil, err
	}
	if modes == nil {
		return nil, p.infeasible(g)
	}
	a := &Allocation{Modules: make([]Allocated, len(p.Modules))}
	for i := range w.modules {
		uses := w.refine(i, modes[i])
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

// objectiveMargin covers the solver's tolerance, a nanosecond per row.
const objectiveMargin = 100 * time.Nanosecond

// first solves 2a-2d. It returns by module the mode of every machine, -1 where nothing is asked, and a bound on the
// cost. There are no modes where nothing is feasible.
func (w *paperMethod) first(ctx context.Context) (modes []int, bound float64, err error) {
	curves, of := make([]costCurve, len(w.modules)), make([][]int, len(w.modules))
	for i, m := range w.modules {
		if curves[i], of[i] = m.fractional(w.p.SLO); len(curves[i]) == 0 {
			return nil, 0, nil
		}
	}
	var steps []int
	if w.solver == nil {
		steps, _, bound = w.g.leastCost(curves, w.p.SLO, maxNodes)
	} else if steps, bound, err = w.program(ctx, curves); err != nil {
		return nil, 0, err
	}
	for i, k := range steps {
		modes = append(modes, of[i][k])
		w.latency[i] = curves[i][k].latency
	}
	return modes, bound, nil
}

// program solves 2a-2d as an integer program, and returns the step of every module's curve.
func (w *paperMethod) program(ctx context.Context, curves []costCurve) (steps []int, bound float64, err error) {
	x := &milp.Program{}
	begins, uses := make([]int, len(curves)), make([][]int, len(curves))
	for i := range curves {
		begins[i] = x.Column(milp.Column{Upper: milli(w.p.SLO)})
	}
	for i, steps := range curves {
		var sum, mean, one []milp.Term
		for _, at := range steps {
			use := x.Column(milp.Column{Upper: 1, Integer: true})
			share := x.Column(milp.Column{Objective: at.cost, Upper: 1}) // t/r
			x.Row(-milp.Inf, 0, milp.Term{Column: share, Coef: 1}, milp.Term{Column: use, Coef: -1})
			uses[i] = append(uses[i], use)
			sum = append(sum, milp.Term{Column: share, Coef: 1})
			one = append(one, milp.Term{Column: use, Coef: 1})
			mean = append(mean, milp.Term{Column: share, Coef: milli(at.latency)})
			w.addPrecedence(x, begins, i, milp.Term{Column: use, Coef: milli(at.latency)})
		}
		x.Row(1, 1, sum...)
		x.Row(1, 1, one...)
		w.addPrecedence(x, begins, i, mean...)
	}
	out, err := w.solver.Solve(ctx, x, milp.Limits{})
	switch {
	case err != nil || out.Status == milp.Infeasible:
		return nil, 0, err
	case out.Status != milp.Optimal:
		return nil, 0, fmt.Errorf("scrooge: the first program ended as %v, want an optimum", out.Status)
	}
	for i := range uses {
		steps = append(steps, slices.IndexFunc(uses[i], func(c int) bool { return out.Values[c] > 0.5 }))
	}
	return steps, out.Bound, nil
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

// refine gives module i its machines: full ones in a mode, and one for the remaining rate, whose mode is the second
// program's. It returns nil when there are none.
func (w *paperMethod) refine(i, mode int) []Use {
	m := w.modules[i]
	if mode < 0 {
		return nil
	}
	before, behind := dag.Around(w.g.next, w.latency)
	within := w.p.SLO - before[i] - behind[i]
	x := &m.modes[mode]
	full := math.Floor(m.rate/x.cap + remainderTolerance)
	c := composition{remainderMode: -1, remainder: m.rate - full*x.cap}
	if c.remainder > remainderTolerance*m.rate {
		c.remainderMode = m.cheapestMode(c.remainder, 1, within)
		for c.remainderMode < 0 { // no mode carries so little in time
			if c.remainderMode = m.cheapestMode(c.remainder, math.Inf(1), within); c.remainderMode >= 0 {
				break
			}
			if full--; full < 0 {
				return nil
			}
			c.remainder += x.cap
		}
	}
	if full > 0 {
		c.full = []fulls{{mode, int(full)}}
	}
	uses := m.uses(c)
	w.latency[i] = 0
	for _, u := range uses {
		w.latency[i] = max(w.latency[i], m.modes[u.Mode].WorstLatency(min(u.Rate, m.modes[u.Mode].cap)))
	}
	return uses
}
