package kairos

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sluice-serving/sluice/internal/algo/lp"
)

// Fluid is an upper bound on the queries/s that a pool serves in time, for any number of types and any routing rule. It
// is a linear program over the classes of the mix (ours). With x_ct the queries/s of class c that run on type t,
// took_ct their run time, inTime_ct the share of them that ends in time, and n_t the machines:
//
//	max theta    with    sum_t x_ct             <= theta share_c       each query runs at most once
//	                     sum_c took_ct x_ct     <= n_t                 machines have no more than their time
//	                     sum_ct inTime_ct x_ct  >= theta (1 - late)    at most the share late misses the objective
//
// In the long run every routing rule satisfies these constraints, so none exceeds theta. Queries need not run: those
// that may be late cost nothing, as if they were dropped, and the program leaves out the most expensive. The bound is
// tight in what the program knows: mean run times, or the shares Type.InTime. Without InTime a size with a mean
// slightly beyond the objective counts as never in time though some of its runs are; then it bounds the means only.
//
// Its dual has a price y_t for the time of each type and one for lateness, theta = min sum_t n_t y_t. The dual
// constraints are the same for every pool: one for each way to assign every class to a type or to none. There are too
// many to list, but the one that prices violate most is found by giving each class to the type where it gains most. So
// this is column generation: the simplex method runs on the assignments found last, for whatever pool, and looks for
// another when they gain nothing more.
//
// A Fluid keeps the assignments that it has found for the next pool of the same types. It is not for concurrent use.
type Fluid struct {
	lateShare float64
	types     int // number of types
	classes   int
	share     []float64 // by class
	took      []float64 // by class, then type, in unit
	inTime    []float64 // by class, then type
	unit      float64   // seconds; chosen to bring the numbers of the program near 1
	programs  map[uint64]*program
}

// program is the program of pools with machines of some types, one bit of a set each.
type program struct {
	lp       lp.Program
	f        *Fluid
	types    []int
	servable bool // they serve as much of the mix as must be in time
	// assignments are by column the type of each class, an index into types, or none. A column is the queries/s that
	// are sent so. Its rows are the time of each type and the lateness that one query/s takes.
	assignments [][]int8
	prices      []float64 // dual prices by row
	violation   float64   // of the dual constraint that the prices violate most
	found       []int8    // that assignment
	terms       []lp.Term // of its column
}

// maxTypes is the number of types that a set has bits for.
const maxTypes = 64

const (
	none = -1
	// reward is what a query/s brings in the program: so much that the tolerance of algo/lp is zeroTolerance of it.
	reward = 1e3
	// zeroTolerance is the largest violation that counts as none. It decides when to stop; the bound is valid for any
	// value of it.
	zeroTolerance = 1e-12
	// servedTolerance is the part of the mix that may be missing in time because of rounding.
	servedTolerance = 1e-9
	// keptColumns is how many assignments a program keeps from pool to pool, keptPrograms how many programs are kept.
	// After mostColumns for one pool the prices are taken as they are.
	keptColumns, keptPrograms, mostColumns = 64, 512, 1000
)

// NewFluid prepares the bound for a market, which it does not keep. late is the share of the queries that may miss the
// objective, in [0, 1): 0.01 for an objective at the 99th percentile. It fails for a share outside of that and for more
// than 64 types.
func NewFluid(m *Market, late float64) (*Fluid, error) {
	if !(late >= 0 && late < 1) {
		return nil, fmt.Errorf("the part of the queries that may be late is %v, want a number in [0, 1)", late)
	}
	if len(m.Types) > maxTypes {
		return nil, fmt.Errorf("%d types of machines: the linear program takes at most %d", len(m.Types), maxTypes)
	}
	f := &Fluid{
		lateShare: late, types: len(m.Types), classes: m.Mix.Classes(), unit: math.Inf(1),
		programs: make(map[uint64]*program),
	}
	for t := range m.Types {
		sum, in := 0.0, 0.0
		for c := range f.classes {
			if _, share := m.Mix.Class(c); m.inTime(t, c) > 0 {
				sum += share * m.Types[t].Latency[c].Seconds()
				in += share
			}
		}
		if in > 0 {
			f.unit = min(f.unit, sum/in)
		}
	}
	for c := range f.classes {
		_, share := m.Mix.Class(c)
		f.share = append(f.share, share)
		for t := range m.Types {
			took, chance := m.Types[t].Latency[c].Seconds()/f.unit, m.inTime(t, c)
			if chance == 0 {
				took = 0 // no query is sent there, and the time may be Unknown, which is too large for the program
			}
			f.took, f.inTime = append(f.took, took), append(f.inTime, chance)
		}
	}
	return f, nil
}

// program returns the program of a set of types.
func (f *Fluid) program(set uint64) *program {
	if x, ok := f.programs[set]; ok {
		return x
	}
	if len(f.programs) >= keptPrograms {
		clear(f.programs)
	}
	x := &program{f: f, found: make([]int8, f.classes)}
	f.programs[set] = x
	for t := range f.types {
		if set&(1<<t) != 0 {
			x.types = append(x.types, t)
		}
	}
	served := 0.0
	for c, share := range f.share {
		most := 0.0
		for _, t := range x.types {
			most = max(most, f.inTime[c*f.types+t])
		}
		served += share * most
	}
	x.servable = served >= 1-f.lateShare-servedTolerance
	x.prices, x.terms = make([]float64, len(x.types)+1), make([]lp.Term, len(x.types)+1)
	return x
}

// of returns the program of the types of a pool.
func (f *Fluid) of(p Pool) *program {
	set := uint64(0)
	for t, n := range p {
		if n > 0 {
			set |= 1 << t
		}
	}
	return f.program(set)
}

// Of returns the bound of a pool in queries/s. It is 0 when the pool's types cannot serve the share of the mix that
// must be in time.
func (f *Fluid) Of(p Pool) float64 {
	x := f.of(p)
	if !x.servable {
		return 0
	}
	return x.bound(p)
}

// bound is Of for a program of more types than the pool has as well.
func (x *program) bound(p Pool) float64 {
	x.solve(p)
	sum := 0.0
	for r, t := range x.types {
		sum += float64(p[t]) * x.prices[r]
	}
	if x.violation >= 1 {
		return math.Inf(1) // the search was cut short, and its prices bound nothing
	}
	// All constraints hold for these prices divided by 1 less the largest violation, so this bounds whatever the search
	// has overlooked.
	return sum / (1 - max(x.violation, 0)) / x.f.unit
}

// Optimum is the bound of a pool with the solution of the linear program that reaches it.
type Optimum struct {
	Bound float64
	// MarginalRates are by type the queries/s that one more machine adds to the bound: the dual prices. They hold for
	// small changes. Nil when Bound is 0.
	MarginalRates []float64
	// Use is by type, then class, the share of the class's queries that run there. The remainder to 1 is left out as
	// late. Nil when Bound is 0.
	Use [][]float64
}

// Solve returns the optimum of the linear program for a pool. The slices belong to the caller.
func (f *Fluid) Solve(p Pool) Optimum {
	if !f.of(p).servable {
		return Optimum{}
	}
	x := f.program(1<<f.types - 1) // a type without machines has the price that its first one is worth
	out := Optimum{Bound: x.bound(p)}
	for t := range f.types {
		out.MarginalRates = append(out.MarginalRates, x.prices[t]/f.unit)
		out.Use = append(out.Use, make([]float64, f.classes))
	}
	amounts := x.lp.Solution(nil)
	all := floats.Sum(amounts)
	for k, amount := range amounts {
		for c, t := range x.assignments[k] {
			if t != none {
				out.Use[t][c] += amount / all
			}
		}
	}
	return out
}

// shares returns, for Optimum.Use, the share of all queries that each type serves, and their sum; nil for nil.
func (f *Fluid) shares(use [][]float64) (each []float64, sum float64) {
	for t := range use {
		share := 0.0
		for c, part := range use[t] {
			share += f.share[c] * part
			sum += f.share[c] * part
		}
		each = append(each, share)
	}
	return each, sum
}

// solve finds the dual prices of a pool, from the assignments and the basis of the previous one.
func (x *program) solve(p Pool) {
	if len(x.assignments) >= keptColumns || x.assignments == nil {
		x.lp.Reset(len(x.types) + 1)
		x.assignments, x.violation = x.assignments[:0], 1
	}
	for r, t := range x.types {
		x.lp.Limit(r, float64(p[t]))
	}
	for range mostColumns {
		x.lp.Solve(0)
		same := x.violation <= zeroTolerance
		for r, y := range x.prices {
			x.prices[r] = max(x.lp.Dual(r)/reward, 0)
			same = same && x.prices[r] == y
		}
		if same {
			return // the prices of the previous pool are optimal here, too
		}
		if x.violation = x.find(); x.violation <= zeroTolerance {
			return
		}
		x.lp.Add(reward, math.Inf(1), x.terms...)
		x.assignments = append(x.assignments, slices.Clone(x.found))
	}
}

// find finds the assignment whose constraint the prices violate most, and returns the violation: every class goes to
// the type where it gains most.
func (x *program) find() float64 {
	f, last := x.f, len(x.types)
	for r := range x.terms {
		x.terms[r] = lp.Term{Row: r}
	}
	late := x.prices[last]
	gained, served := 0.0, 0.0
	for k, share := range f.share {
		took := f.took[k*f.types:][:f.types]
		chance := f.inTime[k*f.types:][:f.types]
		at, most := none, 0.0
		for r, t := range x.types {
			if gain := chance[t]*late - took[t]*x.prices[r]; gain > most {
				at, most = r, gain
			}
		}
		if x.found[k] = int8(at); at != none {
			gained += share * most
			served += share * chance[x.types[at]]
			x.terms[at].Coef += share * took[x.types[at]]
		}
	}
	x.terms[last].Coef = 1 - f.lateShare - served
	return 1 - late*(1-f.lateShare) + gained
}
