package kairos

import (
	"fmt"
	"math"
)

// Fluid is an upper bound on what pools of a market serve in time, however many types they have and whatever rule sends
// which query where. It is a linear program over the classes of the mix, ours rather than the paper's. With x_ct the
// queries/s of class c that run on type t, took_ct how long they take, chance_ct the share of them that ends in time,
// and n_t the machines:
//
//	max theta    with    sum_t x_ct             <= theta share_c       each query runs at most once
//	                     sum_c took_ct x_ct     <= n_t                 machines have no more than their time
//	                     sum_ct chance_ct x_ct  >= theta (1 - late)    at most the part late misses the objective
//
// Over a long time every rule of sending queries meets these, so none passes theta. Queries need not run: those that
// may be late cost nothing, as if they were dropped, and the program leaves out the ones that cost most. Where all runs
// of a size take their average, or Type.InTime says how they scatter, the program knows all there is. Without InTime a
// size whose average lies a little beyond the objective counts as never in time though some of its runs are; then only
// the averages are bounded.
//
// The dual has a price for the time of each type, theta = min sum_t n_t y_t, and one for being late. Its constraints
// are the same for every pool: one for each way to give every class to a type or to nobody. Which of them prices break
// most is found by giving each class to whom it is worth most, so all are heeded and none is listed. The simplex method
// runs on those found last, for whatever pool, and looks for another when they have no more to give.
//
// It keeps what it has found and is not for concurrent use.
type Fluid struct {
	lateShare float64
	types     int // each has a row of the program; the last row is being late
	classes   int
	share     []float64       // by class
	took      []float64       // by class and type, in unit
	inTime    []float64       // likewise
	unit      float64         // seconds; it makes the numbers of the program lie around 1
	servable  map[uint64]bool // by the set of a pool's types, whether they serve as much of the mix as must be in time
	slacks    []column        // by row
	found     []column        // assignments, for whatever pool they were found; the oldest is written over
	rows      []float64       // of found, one column after the other
	known     int             // how many of found there are
	next      int             // where the next one goes
	basis     []column
	inverse   [][]float64 // of the basis, by position there and row
	prices    []float64   // by row, as the basis implies them
	violation float64     // by how much the prices break the constraint that they break most
	amounts   []float64   // of the basis
	pivots    int         // since the basis was made of slacks
	enters    []float64   // the column that enters, in terms of the basis
	set       uint64      // of the types that are priced: others have no machine, and queries are not sent there
	active    []int       // the types of set
}

// column is a variable of the program: how many queries/s are sent as an assignment has it. They take rows of each
// type's time, and of what may be late. A slack, of worth 0, sends none.
type column struct {
	rows   []float64
	reward float64
	at     []float64 // the prices at which the assignment is the one broken most
	set    uint64    // of the types that it sends queries to
}

// mostTypes is how many types fit a set.
const maxTypes = 64

const (
	nobody = -1
	// tiny is what the simplex method takes for 0. It decides when to stop; that the answer bounds does not hang on it.
	zeroTolerance = 1e-12
	// growth is what each type has of machines in addition, while a basis is looked for: no two corners of the program
	// coincide then, and a type of which there is no machine has the price that its first is worth.
	perturbation = 1e-9
	// refresh is after how many pivots the basis is made anew, so that rounding does not add up.
	maxPivotsPerBasis = 100
	// memory is how many assignments are kept, patience after how many pivots the prices are taken as they are.
	keptColumns, maxPivots = 64, 1000
)

// NewFluid prepares the bound for a market. Late is the part of the queries that may miss the objective, 0.01 where the
// 99th percentile is to meet it.
func NewFluid(m *Market, late float64) (*Fluid, error) {
	if !(late >= 0 && late < 1) {
		return nil, fmt.Errorf("the part of the queries that may be late is %v, want a number in [0, 1)", late)
	}
	if len(m.Types) > maxTypes {
		return nil, fmt.Errorf("%d types of machines: the linear program takes at most %d", len(m.Types), maxTypes)
	}
	f := &Fluid{
		lateShare: late, types: len(m.Types), classes: m.Mix.Classes(), unit: math.Inf(1), servable: make(map[uint64]bool),
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
				took = 0 // never sent there; it may be as long as what was never measured
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
	f.rows = make([]float64, keptColumns*rows)
	for i := range keptColumns {
		c := newColumn(rows)
		c.rows = f.rows[i*rows:][:rows:rows]
		f.found = append(f.found, c) // of worth 0 until one is found
	}
	f.prices, f.amounts, f.enters = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	f.restart()
	return f, nil
}

func newColumn(rows int) column {
	return column{rows: make([]float64, rows), at: make([]float64, rows)}
}

// Of returns the bound of a pool, in queries/s; 0 when its machines cannot serve as much of the mix as must be in time.
func (f *Fluid) Of(p Pool) float64 {
	set := uint64(0)
	for t, n := range p {
		if n > 0 {
			set |= 1 << t
		}
	}
	return f.of(p, set)
}

// of is Of with prices for the types of a set only, which has those of the pool. What a machine of another type would
// be worth takes time to find out, and changes nothing about the bound.
func (f *Fluid) of(p Pool, set uint64) float64 {
	if !f.servesEnough(p) {
		return 0
	}
	f.solve(p, set)
	sum := 0.0
	for t, n := range p {
		sum += float64(n) * max(f.prices[t], 0)
	}
	if f.violation >= 1 {
		return math.Inf(1) // the method gave up, and prices that bound nothing are all there is
	}
	// All constraints hold of these prices divided by 1 less what the most broken one lacks, so this bounds whatever
	// the method has overlooked.
	return sum / (1 - max(f.violation, 0)) / f.unit
}

// reaches tells whether the machines of a pool, if there were enough, could serve as much as must be in time.
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

// Optimum is what the program says of a pool besides its bound.
type Optimum struct {
	Bound float64
	// Worth is, by type, the queries/s that a machine more would add, as long as it adds at that rate; nil when Bound
	// is 0.
	MarginalRates []float64
	// Use is, by type and class, the part of the class's queries that run there. What is missing to 1 is left out as
	// late.
	Use [][]float64
}

// Solve returns the bound of a pool and the solution that reaches it.
func (f *Fluid) Solve(p Pool) Optimum {
	out := Optimum{Bound: f.of(p, 1<<f.types-1)}
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
			f.priceOut(b.at, &spare, to)
			for c, t := range to {
				if t != nobody {
					out.Use[t][c] += max(f.amounts[k], 0) / all
				}
			}
		}
	}
	return out
}

// solve finds the optimal basis of a pool and its prices. It begins with the basis of the pool before, where this pool
// can have as much of it, or else with one in which nothing is served.
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
				return // the prices are those of the pool before
			}
			c = &f.found[f.next]
			f.violation = f.priceOut(f.prices, c, nil)
			f.known = max(f.known, f.next+1)
			if f.violation <= zeroTolerance {
				return
			}
			f.next = (f.next + 1) % keptColumns
			most = f.violation
		}
		leaves, least := nobody, math.Inf(1)
		for k, row := range f.inverse {
			f.enters[k] = dot(row, c.rows)
			if x := f.enters[k]; x > zeroTolerance && max(f.amounts[k], 0) < least*x {
				leaves, least = k, max(f.amounts[k], 0)/x
			}
		}
		if leaves == nobody {
			return // every assignment takes time or is late, so only rounding leads here
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

// amount computes how much a pool, grown a little, can have of each column of the basis; false when that is less than
// nothing.
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

// price returns the column, a slack or an assignment found before, that would gain most at the present prices, and how
// much.
func (f *Fluid) entering() (c *column, most float64) {
	for r, y := range f.prices {
		if -y > most {
			c, most = &f.slacks[r], -y
		}
	}
	at, rows := nobody, len(f.prices)
	for i := range f.known {
		if f.found[i].set&^f.set != 0 {
			continue
		}
		gain := 1 - dot(f.prices, f.rows[i*rows:])
		if gain > most {
			at, most = i, gain
		}
	}
	if at != nobody {
		c = &f.found[at]
	}
	return c, most
}

// best makes c the assignment whose constraint prices break most, and returns by how much; to, unless nil, gets the
// type of every class.
func (f *Fluid) priceOut(prices []float64, c *column, to []int) float64 {
	for r, y := range prices {
		c.at[r], c.rows[r] = max(y, 0), 0
	}
	c.reward, c.set = 1, 0
	y, late := c.at[:f.types], c.at[f.types]
	gained, served := 0.0, 0.0
	for k, share := range f.share {
		took := f.took[k*f.types:][:len(y)]
		chance := f.inTime[k*f.types:][:len(y)]
		at, most := nobody, 0.0
		for _, t := range f.active {
			if gain := chance[t]*late - took[t]*y[t]; gain > most {
				at, most = t, gain
			}
		}
		if to != nil {
			to[k] = at
		}
		if at != nobody {
			gained += share * most
			served += share * chance[at]
			c.rows[at] += share * took[at]
			c.set |= 1 << at
		}
	}
	c.rows[f.types] = 1 - f.lateShare - served
	return 1 - late*(1-f.lateShare) + gained
}

// pivot lets a column of which there can be amount, at a gain for each, take a place in the basis.
func (f *Fluid) pivot(leaves int, c *column, gain, amount float64) {
	b := &f.basis[leaves]
	b.reward = c.reward
	copy(b.rows, c.rows)
	copy(b.at, c.at)
	row, by := f.inverse[leaves], 1/f.enters[leaves]
	f.pivots++
	f.violation = 1
	for r := range row {
		row[r] *= by
		f.prices[r] += gain * row[r]
	}
	for k, x := range f.enters {
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
