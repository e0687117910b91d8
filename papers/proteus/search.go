package proteus

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Plan implements plan.Planner. When ctx ends the search, it returns the best plan so far with its proven bound. A plan
// that cannot carry the demand says in Shed what it leaves out. It fails without a solver, and when nothing can serve
// some stage.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if p.Solver == nil {
		return nil, errNoSolver
	}
	m, err := p.newProblem(r)
	if err != nil {
		return nil, err
	}
	f, err := p.find(ctx, m)
	if err != nil {
		return nil, err
	}
	out := m.plan(f, r)
	if m.o.Share {
		m.rule().ShareLeftOut(&r, r.Believed(p.Profile), out, capacity.Sharers{})
	}
	return out, nil
}

// found is the result of a search.
type found struct {
	*allocation
	fractions []float64 // served parts of the demand, by stage; nil with goal Throughput
	multiple  float64   // of the demand, with goal Throughput; otherwise 1
	bound     float64   // on the goal's value at the served fractions
	proven    bool
	duals     duals // of the relaxation that gave the bound
}

// search looks for the best allocation at the problem's head-room. relaxed is the relaxation of m.build(nil); nil where
// it is not known. A shallow search leaves out the last step.
func (p *Planner) search(ctx context.Context, m *problem, relaxed *milp.Solution, shallow bool) (*found, error) {
	// Step 1: round the relaxation, and climb from there.
	out, err := p.relax(ctx, m, relaxed)
	if err != nil {
		return nil, err
	}
	best := m.climbFromAll(ctx, out.counts)
	if a := m.rate(best.counts, 1); a.better(out.allocation) {
		out.allocation = a
	}
	// Step 2: if that leaves out some of the demand, decide which parts are served before accuracy is considered.
	if m.sheds(out.allocation) {
		if best, err = p.serveMost(ctx, m, out, best); err != nil {
			return nil, err
		}
	}
	out.fractions = m.fractions(out.allocation)
	if a := m.rate(best.counts, 1); m.covers(a, out.fractions) &&
		m.objective(a.counts, out.fractions) > m.objective(out.counts, out.fractions) {
		out.allocation = a
	}
	// Step 3: generate columns if the relaxation does not prove the result to be good enough.
	near := m.o.Gap * negligible
	if shallow {
		near = min(near, m.o.Slack*negligible)
	}
	if m.relativeGap(out) > near {
		if err = p.generateColumns(ctx, m, out, near); err != nil {
			err = fmt.Errorf("planner proteus: %w", err)
		}
	}
	// Step 4: if that is not enough either, the solver searches the program itself.
	gap := m.o.Gap
	if len(m.byWorker) > 0 {
		gap = max(gap/2, gap-m.o.Tolerance) // the bound counts the reward for kept workers, the plan's gap does not
	}
	if err == nil && !shallow && m.relativeGap(out) > gap {
		err = p.improve(ctx, m, m.build(out.fractions), out, gap)
	}
	if ctx.Err() != nil {
		err = nil // what was found so far is a plan
	}
	m.settle(ctx, out)
	return out, err
}

// relax rounds the relaxation, which it solves unless it is given. When ctx ends, it begins with nothing instead.
func (p *Planner) relax(ctx context.Context, m *problem, relaxed *milp.Solution) (*found, error) {
	x := m.build(nil)
	var err error
	if relaxed == nil {
		relaxed, err = p.Solver.Solve(ctx, &x.Program, milp.Limits{Relax: true})
	}
	out := &found{multiple: 1, bound: math.Inf(1), duals: m.dualsOf(x, relaxed)}
	switch {
	case err == nil && relaxed.Status == milp.Optimal:
		out.allocation = m.round(func(k int) float64 { return relaxed.Values[x.workers[k]] })
		out.bound, out.proven = relaxed.Bound, true
	case err == nil:
		return nil, fmt.Errorf("planner proteus: the relaxed program is %v, which its shape rules out", relaxed.Status)
	case ctx.Err() != nil:
		out.allocation = m.round(func(int) float64 { return 0 })
	default:
		return nil, fmt.Errorf("planner proteus: %w", err)
	}
	return out, nil
}

// climbFromAll returns the best local optimum reached from counts, from what runs, and from the hint. Where it does not
// serve the whole demand, it is perturbed.
func (m *problem) climbFromAll(ctx context.Context, counts []int) *localSearch {
	best := m.newLocalSearch(ctx, counts, nil)
	best.climb()
	for _, from := range [][]int{m.running(), m.hint} {
		if from == nil {
			continue
		}
		c := m.newLocalSearch(ctx, from, nil)
		if c.climb(); c.objective() > best.objective() {
			best = c
		}
	}
	sheds := func() bool { return m.sheds(m.rate(best.counts, 1)) }
	if sheds() {
		best.perturb(func(float64) bool { return !sheds() })
	}
	return best
}

// relativeGap returns the distance of what was found to its bound, relative to its objective.
func (m *problem) relativeGap(f *found) float64 {
	value := m.objective(f.counts, f.fractions)
	return (f.bound - value) / max(math.Abs(value), 1e-9)
}

// negligible is the part of the gap below which an improvement is not worth a search.
const negligible = 0.25

// maximizeThroughput is the search for goal Throughput.
func (p *Planner) maximizeThroughput(ctx context.Context, m *problem) (*found, error) {
	multiple, bound, counts, err := p.largestMultiple(ctx, m, everyStage(scaled))
	out := &found{multiple: multiple, bound: bound, proven: true}
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, err
	case counts == nil:
		out.allocation, out.proven = m.round(func(int) float64 { return 0 }), false
	default:
		out.allocation = m.rate(counts, 1)
	}
	m.settle(ctx, out)
	return out, nil
}

// improve lets the solver look for a better allocation than out has, to within gap of the best.
func (p *Planner) improve(ctx context.Context, m *problem, x *program, out *found, gap float64) error {
	s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{
		Gap: gap, Nodes: m.o.Nodes, Start: m.point(x, out.allocation, out.fractions),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // out of time: what was found so far is a plan
	case err != nil:
		return fmt.Errorf("planner proteus: %w", err)
	case s.Status != milp.Optimal && s.Status != milp.Feasible:
		return nil // the limit came before a point was found; the rounded plan stands
	}
	counts := make([]int, len(m.pairs))
	for k := range counts {
		counts[k] = int(s.Values[x.workers[k]])
	}
	out.bound, out.proven = min(out.bound, s.Bound), true
	if m.objective(counts, out.fractions) >= m.objective(out.counts, out.fractions) {
		out.allocation = m.rate(counts, 1)
	}
	return nil
}
