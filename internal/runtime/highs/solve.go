package highs

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/tetratelabs/wazero/api"
)

// Model statuses of HiGHS (HighsModelStatus).
const (
	statusModelEmpty            = 6
	statusOptimal               = 7
	statusInfeasible            = 8
	statusUnboundedOrInfeasible = 9
	statusUnbounded             = 10
	statusIterationLimit        = 14
	statusSolutionLimit         = 16
	statusInterrupt             = 17
	statusMemoryLimit           = 18
)

const (
	feasiblePoint = 2 // info primal_solution_status
	byColumn      = 1
	maximize      = -1
	minimize      = 1
)

// Solve implements milp.Solver.
func (s *Solver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if boundsCross(p) {
		return &milp.Solution{Status: milp.Infeasible}, nil
	}
	x, err := s.take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	r := run{x: x, ctx: ctx, p: p, l: l}
	out, err := r.solve()
	s.putBack(x, err)
	return out, err
}

// boundsCross reports infeasibilities that HiGHS treats as errors or ignores: bounds that cross, and rows without terms
// that cannot hold.
func boundsCross(p *milp.Program) bool {
	for _, c := range p.Columns {
		if c.Lower > c.Upper {
			return true
		}
	}
	for _, r := range p.Rows {
		if r.Lower > r.Upper || len(r.Terms) == 0 && (r.Lower > 0 || r.Upper < 0) {
			return true
		}
	}
	return false
}

// run is one solve on one module.
type run struct {
	x     *module
	ctx   context.Context
	p     *milp.Program
	l     milp.Limits
	highs uint64
	err   error // the first error; calls after it do nothing
}

func (r *run) call(name string, args ...uint64) int32 {
	if r.err != nil {
		return 0
	}
	var out uint64
	out, r.err = r.x.call(r.ctx, name, args...)
	return int32(out)
}

// must makes a call that returns HiGHS's status, of which -1 is an error.
func (r *run) must(what, name string, args ...uint64) {
	if r.call(name, args...) < 0 && r.err == nil {
		r.err = fmt.Errorf("highs: %s was refused; it said last: %q", what, r.x.lastLog())
	}
}

func (r *run) text(s string) (p uint64) {
	if r.err == nil {
		p, r.err = r.x.text(r.ctx, s)
	}
	return p
}

func (r *run) floats(v []float64) (p uint64) {
	if r.err == nil {
		p, r.err = r.x.floats(r.ctx, v)
	}
	return p
}

func (r *run) ints(v []int32) (p uint64) {
	if r.err == nil {
		p, r.err = r.x.ints(r.ctx, v)
	}
	return p
}

func (r *run) bool(name string, v uint64) {
	r.must("option "+name, exportSetBoolOptionValue, r.highs, r.text(name), v)
}

func (r *run) int(name string, v int32) {
	r.must("option "+name, exportSetIntOptionValue, r.highs, r.text(name), uint64(uint32(v)))
}

func (r *run) float(name string, v float64) {
	r.must("option "+name, exportSetDoubleOptionValue, r.highs, r.text(name), api.EncodeF64(v))
}

func (r *run) word(name, v string) {
	r.must("option "+name, exportSetStringOptionValue, r.highs, r.text(name), r.text(v))
}

func (r *run) info(kind, name string, bytes int) uint64 {
	at := r.floats([]float64{0})
	r.must("info "+name, kind, r.highs, r.text(name), at)
	if r.err != nil {
		return 0
	}
	if bytes == 4 {
		v, _ := r.x.m.Memory().ReadUint32Le(uint32(at))
		return uint64(v)
	}
	v, _ := r.x.m.Memory().ReadUint64Le(uint32(at))
	return v
}

func (r *run) solve() (*milp.Solution, error) {
	r.x.guest = guest{}
	r.highs = uint64(uint32(r.call(exportCreate)))
	mip := false
	for _, c := range r.p.Columns {
		mip = mip || c.Integer && !r.l.Relax
	}
	r.bool("output_flag", 0)
	r.int("threads", 1)
	r.word("parallel", "off")
	r.int("random_seed", 0)
	// The feasibility jump takes 45 ms for every program, longer than the whole solve of most programs here.
	r.bool("mip_heuristic_run_feasibility_jump", 0)
	// At the limit of a fleet, neighbourhood searches and restarts take two thirds of the time of a plan and find
	// nothing that branching does not (BenchmarkPlan in test/).
	r.bool("mip_heuristic_run_rins", 0)
	r.bool("mip_heuristic_run_rens", 0)
	r.bool("mip_allow_restart", 0)
	r.float("mip_rel_gap", r.l.Gap)
	r.float("mip_abs_gap", max(r.l.AbsoluteGap, 1e-9))
	if r.l.Nodes > 0 {
		r.int("mip_max_nodes", int32(min(r.l.Nodes, math.MaxInt32)))
	}
	if r.l.NoPresolve {
		r.word("presolve", "off")
	}
	r.passProgram(mip)
	if mip && len(r.l.Start) == len(r.p.Columns) && len(r.p.Columns) > 0 {
		r.call(exportSetSolution, r.highs, r.floats(r.l.Start), 0, 0, 0)
	}
	refused := r.call(exportRun, r.highs) < 0
	status := r.call(exportGetModelStatus, r.highs)
	if (refused || status == statusUnboundedOrInfeasible) && r.err == nil {
		// Presolve does not distinguish unbounded from infeasible, and its solutions sometimes violate a row, which
		// HiGHS then reports as no solution (TestPresolveIsNotTrusted). The solver itself has neither fault.
		r.word("presolve", "off")
		r.must("the program", exportRun, r.highs)
		status = r.call(exportGetModelStatus, r.highs)
	}
	out := r.result(status, mip)
	r.call(exportDestroy, r.highs)
	if r.err == nil {
		r.err = r.x.release(r.ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// passProgram passes the program to HiGHS, column by column.
func (r *run) passProgram(mip bool) {
	p := r.p
	n := len(p.Columns)
	cost, low, high, kind := make([]float64, n), make([]float64, n), make([]float64, n), make([]int32, n)
	for j, c := range p.Columns {
		cost[j], low[j], high[j] = c.Objective, c.Lower, c.Upper
		if c.Integer {
			kind[j] = 1
		}
	}
	rowLow, rowHigh := make([]float64, len(p.Rows)), make([]float64, len(p.Rows))
	start := make([]int32, n+1)
	for i, row := range p.Rows {
		rowLow[i], rowHigh[i] = row.Lower, row.Upper
		for _, t := range row.Terms {
			start[t.Column+1]++
		}
	}
	for j := range n {
		start[j+1] += start[j]
	}
	index, value := make([]int32, start[n]), make([]float64, start[n])
	next := append([]int32(nil), start...)
	for i, row := range p.Rows {
		for _, t := range row.Terms {
			index[next[t.Column]], value[next[t.Column]] = int32(i), t.Coef
			next[t.Column]++
		}
	}
	sense := int32(minimize)
	if p.Maximize {
		sense = maximize
	}
	args := []uint64{r.highs, uint64(n), uint64(len(p.Rows)), uint64(len(index)), byColumn, uint64(uint32(sense)),
		api.EncodeF64(0),
		r.floats(cost), r.floats(low), r.floats(high), r.floats(rowLow), r.floats(rowHigh), r.ints(start),
		r.ints(index), r.floats(value)}
	if mip {
		r.must("the program", exportPassMip, append(args, r.ints(kind))...)
	} else {
		r.must("the program", exportPassLp, args...)
	}
}

// result reads the solution of a solve that has ended with a status of HiGHS; nil with r.err set when there is none.
func (r *run) result(status int32, mip bool) *milp.Solution {
	out := &milp.Solution{}
	if !r.setStatus(out, status) {
		return nil
	}
	if out.Status == milp.Infeasible || out.Status == milp.Unbounded {
		return out
	}
	if mip {
		out.Nodes = int64(r.info(exportGetInt64InfoValue, "mip_node_count", 8))
		out.Bound = math.Float64frombits(r.info(exportGetDoubleInfoValue, "mip_dual_bound", 8))
	}
	if out.Status == milp.Feasible && int32(r.info(exportGetIntInfoValue, "primal_solution_status", 4)) !=
		feasiblePoint {
		out.Status = milp.NoSolution
		return out
	}
	n := len(r.p.Columns)
	at := r.floats(make([]float64, n))
	dual, rows, rowDual := r.floats(make([]float64, n)), r.floats(make([]float64, len(r.p.Rows))),
		r.floats(make([]float64, len(r.p.Rows)))
	r.must("the solution", exportGetSolution, r.highs, at, dual, rows, rowDual)
	if r.err != nil {
		return nil
	}
	if out.Values, r.err = r.x.readFloats(at, n); r.err != nil {
		return nil
	}
	if !mip {
		if out.Duals, r.err = r.x.readFloats(rowDual, len(r.p.Rows)); r.err != nil {
			return nil
		}
	}
	for j, c := range r.p.Columns {
		if c.Integer && mip {
			out.Values[j] = math.Round(out.Values[j])
		}
		out.Values[j] = min(max(out.Values[j], c.Lower), c.Upper)
		out.Objective += c.Objective * out.Values[j]
	}
	if !mip {
		out.Bound = out.Objective
	}
	if worst := r.p.Violation(out.Values); worst > 1e-4 {
		r.fail(fmt.Sprintf("its answer breaks a constraint by %.3g of its size", worst))
		return nil
	}
	r.setGap(out)
	return out
}

// setStatus sets the status of a solution by HiGHS's. It returns false, with r.err set, when there is none.
func (r *run) setStatus(out *milp.Solution, status int32) bool {
	switch status {
	case statusInfeasible:
		out.Status = milp.Infeasible
	case statusUnbounded:
		out.Status = milp.Unbounded
	case statusUnboundedOrInfeasible:
		r.fail("cannot tell an infeasible from an unbounded program")
		return false
	case statusModelEmpty, statusOptimal:
		out.Status = milp.Optimal
	case statusIterationLimit, statusSolutionLimit:
		out.Status = milp.Feasible
	case statusMemoryLimit:
		if r.err == nil {
			r.err = milp.ErrMemory
		}
		return false
	default:
		r.fail(fmt.Sprintf("ended with model status %d", status))
		return false
	}
	return true
}

// setGap sets the gap. Rounding to whole numbers may exceed the bound by the solver's tolerance; the bound is then the
// objective.
func (r *run) setGap(out *milp.Solution) {
	better := out.Bound - out.Objective
	if !r.p.Maximize {
		better = -better
	}
	if better < 0 {
		out.Bound = out.Objective
	}
	out.Gap = math.Abs(out.Bound-out.Objective) / max(math.Abs(out.Objective), 1e-9)
}

func (r *run) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("highs: %s; it said last: %q", what, r.x.lastLog())
	}
}
