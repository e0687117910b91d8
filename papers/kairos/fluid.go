package kairos

import (
	"fmt"
	"math"
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
// A Fluid keeps the assignments that it has found for the next pool. It is not for concurrent use.
type Fluid struct {
	lateShare float64
	types     int // number of types; each has a row of the program, and the last row is lateness
	classes   int
	share     []float64 // by class
	took      []float64 // by class, then type, in unit
	inTime    []float64 // by class, then type
	unit      float64   // seconds; chosen to bring the numbers of the program near 1
	// by the set of a pool's types: whether they serve as much of the mix as must be in time
	servable       map[uint64]bool
	slacks         []column  // by row
	assignments    []column  // found for any pool before; a new one replaces the oldest
	assignmentRows []float64 // the rows of assignments, one column after the other
	filled         int       // number of entries of assignments in use
	next           int       // index of the entry of assignments that is replaced next
	basis          []column
	inverse        [][]float64 // of the matrix of the basis, by position in the basis, then row
	prices         []float64   // dual prices by row, as the basis implies them
	violation      float64     // of the dual constraint that the prices violate most
	amounts        []float64   // of the columns of the basis
	pivots         int         // number since the basis was made of slacks
	direction      []float64   // the entering column in terms of the basis
	set            uint64      // types that are priced, one bit each; no queries are sent to others
	active         []int       // the types of set
}

// column is a variable of the program: the queries/s that are sent by one assignment. Its rows are the time of each
// type and the lateness that one query/s takes. A slack sends none and has reward 0.
type column struct {
	rows   []float64
	reward float64
	at     []float64 // the prices at which this assignment was found
	set    uint64    // types that it sends queries to
}

// maxTypes is the number of types that a set has bits for.
const maxTypes = 64

const (
	none = -1
	// zeroTolerance is the largest number that the simplex method treats as 0. It decides when to stop; the bound is
	// valid for any value of it.
	zeroTolerance = 1e-12
	// perturbation is added to the machines of each type while a basis is looked for. It makes the program
	// nondegenerate, and gives a type without machines the price that its first machine is worth.
	perturbation = 1e-9
	// maxPivotsPerBasis is the number of pivots after which the basis is made anew, so that rounding errors do not add
	// up.
	maxPivotsPerBasis = 100
	// keptColumns is the number of assignments that are kept. After maxPivots pivots the prices are taken as they are.
	keptColumns, maxPivots = 64, 1000
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
		servable: make(map[uint64]bool),
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
	rows := f.types + 1
	for r := range rows {
		slack := newColumn(rows)
		slack.rows[r] = 1
		f.slacks, f.basis = append(f.slacks, slack), append(f.basis, newColumn(rows))
		f.inverse = append(f.inverse, make([]float64, rows))
	}
	f.assignmentRows = make([]float64, keptColumns*rows)
	for i := range keptColumns {
		c := newColumn(rows)
		c.rows = f.assignmentRows[i*rows:][:rows:rows]
		f.assignments = append(f.assignments, c) // its reward is 0 until one is found
	}
	f.prices, f.amounts, f.direction = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	f.restart()
	return f, nil
}

func newColumn(rows int) column {
	return column{rows: make([]float64, rows), at: make([]float64, rows)}
}

// Of returns the bound of a pool in queries/s. It is 0 when the pool's types cannot serve the share of the mix that
// must be in time.
func (f *Fluid) Of(p Pool) float64 {
	set := uint64(0)
	for t, n := range p {
		if n > 0 {
			set |= 1 << t
		}
	}
	return f.boundOver(p, set)
}

// boundOver is Of with prices for the types of a set only, which includes those of the pool. Pricing a type without
// machines takes time and does not change the bound.
func (f *Fluid) boundOver(p Pool, set uint64) float64 {
	if !f.servesEnough(p) {
		return 0
	}
	f.solve(p, set)
	sum := 0.0
	for t, n := range p {
		sum += float64(n) * max(f.prices[t], 0)
	}
	if f.violation >= 1 {
		return math.Inf(1) // the search was cut short, and its prices bound nothing
	}
	// All constraints hold for these prices divided by 1 less the largest violation, so this bounds whatever the search
	// has overlooked.
	return sum / (1 - max(f.violation, 0)) / f.unit
}

// servesEnough reports whether the types of a pool, with enough machines, serve as much as must be in time.
func (f *Fluid) servesEnough(p Pool) bool {
	set := uint64(0)
	for t, n := range p {
		if n > 0 {
			set |= 1 << t
		}
	}
	known, ok := f.servable[set]
	if !ok {
		served := 0.0
		for c, share := range f.share {
			most := 0.0
			for t, n := range p {
				if n > 0 {
					most = max(most, f.inTime[c*f.types+t])
				}
			}
			served += share * most
		}
		known = served >= 1-f.lateShare-perturbation
		f.servable[set] = known
	}
	return known
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
	out := Optimum{Bound: f.boundOver(p, 1<<f.types-1)}
	if out.Bound == 0 {
		return out
	}
	for t := range f.types {
		out.MarginalRates = append(out.MarginalRates, max(f.prices[t], 0)/f.unit)
		out.Use = append(out.Use, make([]float64, f.classes))
	}
	all := 0.0
	for k := range f.basis {
		all += f.basis[k].reward * max(f.amounts[k], 0)
	}
	to, spare := make([]int, f.classes), newColumn(f.types+1)
	for k := range f.basis {
		if b := &f.basis[k]; b.reward > 0 {
			f.solvePricing(b.at, &spare, to)
			for c, t := range to {
				if t != none {
					out.Use[t][c] += max(f.amounts[k], 0) / all
				}
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

// solve finds the optimal basis of a pool and its prices by the revised simplex method. It starts from the basis of the
// previous pool if that is feasible for this one, else from the basis in which nothing is served.
func (f *Fluid) solve(p Pool, set uint64) {
	if set != f.set {
		f.set, f.active = set, f.active[:0]
		for t := range f.types {
			if set&(1<<t) != 0 {
				f.active = append(f.active, t)
			}
		}
		f.pivots = maxPivotsPerBasis
	}
	if f.pivots >= maxPivotsPerBasis || !f.basicSolution(p) {
		f.restart()
		f.basicSolution(p)
	}
	for range maxPivots {
		c, most := f.entering()
		if most <= zeroTolerance {
			if f.violation <= zeroTolerance {
				return // the prices of the previous pool are optimal here, too
			}
			c = &f.assignments[f.next]
			f.violation = f.solvePricing(f.prices, c, nil)
			f.filled = max(f.filled, f.next+1)
			if f.violation <= zeroTolerance {
				return
			}
			f.next = (f.next + 1) % keptColumns
			most = f.violation
		}
		leaves, least := none, math.Inf(1)
		for k, row := range f.inverse {
			f.direction[k] = dot(row, c.rows)
			if x := f.direction[k]; x > zeroTolerance && max(f.amounts[k], 0) < least*x {
				leaves, least = k, max(f.amounts[k], 0)/x
			}
		}
		if leaves == none {
			return // every assignment takes time or lateness, so only rounding leads here
		}
		f.pivot(leaves, c, most, least)
	}
}

// restart makes the slacks the basis: nothing is served, at prices of 0.
func (f *Fluid) restart() {
	for k := range f.basis {
		f.basis[k].reward = 0
		copy(f.basis[k].rows, f.slacks[k].rows)
		clear(f.inverse[k])
		f.inverse[k][k] = 1
	}
	clear(f.prices)
	f.violation, f.pivots = 1, 0
}

// basicSolution computes the amount of each column of the basis for a slightly enlarged pool, and reports whether all
// are at least 0.
func (f *Fluid) basicSolution(p Pool) bool {
	least := 0.0
	for k, row := range f.inverse {
		x := perturbation * row[f.types]
		for t, n := range p {
			x += (float64(n) + perturbation*float64(t+2)) * row[t]
		}
		f.amounts[k] = x
		least = min(least, x)
	}
	return least >= 0
}

// entering returns the column, a slack or an assignment found before, with the largest reduced cost at the present
// prices, and that cost.
func (f *Fluid) entering() (c *column, most float64) {
	for r, y := range f.prices {
		if -y > most {
			c, most = &f.slacks[r], -y
		}
	}
	at, rows := none, len(f.prices)
	for i := range f.filled {
		if f.assignments[i].set&^f.set != 0 {
			continue
		}
		gain := 1 - dot(f.prices, f.assignmentRows[i*rows:])
		if gain > most {
			at, most = i, gain
		}
	}
	if at != none {
		c = &f.assignments[at]
	}
	return c, most
}

// solvePricing makes c the assignment whose constraint the prices violate most, and returns the violation. to, unless
// nil, gets the type of every class.
func (f *Fluid) solvePricing(prices []float64, c *column, to []int) float64 {
	for r, y := range prices {
		c.at[r], c.rows[r] = max(y, 0), 0
	}
	c.reward, c.set = 1, 0
	y, late := c.at[:f.types], c.at[f.types]
	gained, served := 0.0, 0.0
	for k, share := range f.share {
		took := f.took[k*f.types:][:len(y)]
		chance := f.inTime[k*f.types:][:len(y)]
		at, most := none, 0.0
		for _, t := range f.active {
			if gain := chance[t]*late - took[t]*y[t]; gain > most {
				at, most = t, gain
			}
		}
		if to != nil {
			to[k] = at
		}
		if at != none {
			gained += share * most
			served += share * chance[at]
			c.rows[at] += share * took[at]
			c.set |= 1 << at
		}
	}
	c.rows[f.types] = 1 - f.lateShare - served
	return 1 - late*(1-f.lateShare) + gained
}

// pivot brings a column with the given reduced cost into the basis, in the place of the one that leaves, in the given
// amount.
func (f *Fluid) pivot(leaves int, c *column, gain, amount float64) {
	b := &f.basis[leaves]
	b.reward = c.reward
	copy(b.rows, c.rows)
	copy(b.at, c.at)
	row, by := f.inverse[leaves], 1/f.direction[leaves]
	f.pivots++
	f.violation = 1
	for r := range row {
		row[r] *= by
		f.prices[r] += gain * row[r]
	}
	for k, x := range f.direction {
		if k != leaves && x != 0 {
			other := f.inverse[k]
			for r := range other {
				other[r] -= x * row[r]
			}
			f.amounts[k] -= x * amount
		}
	}
	f.amounts[leaves] = amount
}

func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
