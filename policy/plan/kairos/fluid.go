package kairos

import (
	"fmt"
	"math"
)

// Fluid is an upper bound on what pools of a market serve in time, however many types they have and whatever rule sends which
// query where. It is a linear program over the classes of the mix, ours rather than the paper's. With x_ct the queries/s of class
// c that run on type t, took_ct how long they take, chance_ct the share of them that ends in time, and n_t the machines:
//
//	max theta    with    sum_t x_ct             <= theta share_c       each query runs at most once
//	                     sum_c took_ct x_ct     <= n_t                 machines have no more than their time
//	                     sum_ct chance_ct x_ct  >= theta (1 - late)    at most the part late misses the objective
//
// Over a long time every rule of sending queries meets these, so none passes theta. Queries need not run: those that may be late
// cost nothing, as if they were dropped, and the program leaves out the ones that cost most. Where all runs of a size take
// their average, or Type.InTime says how they scatter, the program knows all there is. Without InTime a size whose average lies
// a little beyond the objective counts as never in time though some of its runs are; then only the averages are bounded.
//
// The dual has a price for the time of each type, theta = min sum_t n_t y_t, and one for being late. Its constraints are the same
// for every pool: one for each way to give every class to a type or to nobody. The simplex method keeps a basis of as many of
// these as there are prices. Which constraint is broken most is found by giving each class to whom it is worth most, so all are
// heeded and none is listed. A pool starts from the basis of the one before it, which is still dual feasible and often optimal.
//
// It keeps that basis and is not for concurrent use.
type Fluid struct {
	late    float64
	types   int // each has a row of the program; the last row is being late
	classes int
	share   []float64 // by class
	took    []float64 // by class and type, in unit
	chance  []float64 // likewise
	unit    float64   // seconds; it makes the numbers of the program lie around 1
	basis   []column
	inverse [][]float64 // of the basis, by position there and row
	prices  []float64   // by row; in force while they are dual feasible
	broken  float64     // by how much the prices break the constraint that they break most
	warm    bool        // whether the prices are those of the basis, and dual feasible
	pivots  int         // since the inverse was computed anew
	entry   column      // what enters the basis
	trial   column      // what may yet
	amounts []float64   // of the basis
	scratch []float64
}

// column is a variable of the program: how many queries/s are sent where to says. They take rows of each type's time, and of what
// may be late. A slack, with worth 0, sends none.
type column struct {
	rows  []float64
	worth float64
	to    []int16 // type by class, or nobody
}

const (
	nobody = -1
	// tiny is what the simplex method takes for 0. It decides when to stop; that the answer bounds does not hang on it.
	tiny = 1e-12
	// growth is what each type has of machines in addition, while a basis is looked for: no two corners of the program coincide
	// then, and a type of which there is no machine has the price that its first is worth.
	growth = 1e-9
	// refresh and patience are the pivots after which the inverse is computed anew, and after which a pool starts afresh.
	refresh, patience = 50, 500
	// beyond is farther along an edge than any corner lies; enough is how much prices may break a constraint by and be kept.
	beyond, enough = 1e6, 1e-10
)

// NewFluid prepares the bound for a market. Late is the part of the queries that may miss the objective, 0.01 where the 99th
// percentile is to meet it.
func NewFluid(m *Market, late float64) (*Fluid, error) {
	if !(late >= 0 && late < 1) {
		return nil, fmt.Errorf("the part of the queries that may be late is %v, want a number in [0, 1)", late)
	}
	f := &Fluid{late: late, types: len(m.Types), classes: m.Mix.Classes(), unit: math.Inf(1)}
	for t := range m.Types {
		sum, in := 0.0, 0.0
		for c := range f.classes {
			if _, share := m.Mix.Class(c); m.chance(t, c) > 0 {
				sum += share * m.Types[t].Took[c].Seconds()
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
			took, chance := m.Types[t].Took[c].Seconds()/f.unit, m.chance(t, c)
			if chance == 0 {
				took = 0 // never sent there; it may be as long as what was never measured
			}
			f.took, f.chance = append(f.took, took), append(f.chance, chance)
		}
	}
	rows := f.types + 1
	for range rows {
		f.basis = append(f.basis, f.column())
		f.inverse = append(f.inverse, make([]float64, rows))
	}
	f.entry, f.trial = f.column(), f.column()
	f.prices, f.amounts, f.scratch = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	return f, nil
}

func (f *Fluid) column() column {
	return column{rows: make([]float64, f.types+1), to: make([]int16, f.classes)}
}

// Of returns the bound of a pool, in queries/s; 0 when its machines cannot serve as much of the mix as must be in time.
func (f *Fluid) Of(p Pool) float64 {
	f.solve(p)
	sum := 0.0
	for t, n := range p {
		sum += float64(n) * max(f.prices[t], 0)
	}
	// All constraints hold of these prices divided by 1 less what the most broken one lacks, so this bounds whatever the method
	// has overlooked.
	sum /= 1 - min(max(f.broken, 0), 0.5)
	if sum < 10*growth {
		return 0 // what the growth alone serves
	}
	return sum / f.unit
}

// Optimum is what the program says of a pool besides its bound.
type Optimum struct {
	Bound float64
	// Worth is, by type, the queries/s that a machine more would add, as long as it adds at that rate; nil when Bound is 0.
	Worth []float64
	// Use is, by type and class, the part of the class's queries that run there. What is missing to 1 is left out as late.
	Use [][]float64
}

// Solve returns the bound of a pool and the solution that reaches it.
func (f *Fluid) Solve(p Pool) Optimum {
	out := Optimum{Bound: f.Of(p)}
	if out.Bound == 0 {
		return out
	}
	for t := range f.types {
		out.Worth = append(out.Worth, max(f.prices[t], 0)/f.unit)
		out.Use = append(out.Use, make([]float64, f.classes))
	}
	all := 0.0
	for k := range f.basis {
		all += f.basis[k].worth * max(f.amounts[k], 0)
	}
	for k := range f.basis {
		if b := &f.basis[k]; b.worth > 0 {
			for c, t := range b.to {
				if t != nobody {
					out.Use[t][c] += max(f.amounts[k], 0) / all
				}
			}
		}
	}
	return out
}

// solve finds the optimal basis and prices of a pool.
func (f *Fluid) solve(p Pool) {
	if f.warm && f.dual(p) {
		return
	}
	f.slacks()
	f.primal(p)
	f.warm = f.broken <= enough
}

// slacks makes a basis in which nothing is served.
func (f *Fluid) slacks() {
	for k := range f.basis {
		f.slack(&f.basis[k], k)
		clear(f.inverse[k])
		f.inverse[k][k] = 1
	}
	f.pivots = 0
}

func (f *Fluid) slack(c *column, row int) {
	clear(c.rows)
	c.rows[row], c.worth = 1, 0
}

// primal improves a basis that is feasible for a pool until no column does.
func (f *Fluid) primal(p Pool) {
	for range patience {
		f.reprice()
		f.amount(p)
		least := 0
		for r, y := range f.prices {
			if y < f.prices[least] {
				least = r
			}
		}
		if f.prices[least] < -tiny {
			f.broken = 1
			f.slack(&f.entry, least)
		} else if f.broken = f.best(f.prices, &f.entry); f.broken <= tiny {
			return
		}
		leaves, most := -1, math.Inf(1)
		for k := range f.basis {
			f.scratch[k] = dot(f.inverse[k], f.entry.rows)
			if f.scratch[k] > tiny {
				if ratio := max(f.amounts[k], 0) / f.scratch[k]; ratio < most {
					leaves, most = k, ratio
				}
			}
		}
		if leaves < 0 {
			return // every assignment takes time or is late, so only rounding comes here
		}
		f.pivot(leaves)
	}
}

// dual makes a basis whose prices are feasible feasible for a pool too. It fails when rounding is in the way.
func (f *Fluid) dual(p Pool) bool {
	for n := range patience {
		f.amount(p)
		leaves := 0
		for k, x := range f.amounts {
			if x < f.amounts[leaves] {
				leaves = k
			}
		}
		if f.amounts[leaves] >= -tiny {
			if n > 0 {
				f.broken = f.best(f.prices, &f.trial)
			}
			return f.broken <= enough
		}
		if !f.meet(f.inverse[leaves]) {
			return false
		}
		for k := range f.basis {
			f.scratch[k] = dot(f.inverse[k], f.entry.rows)
		}
		if f.scratch[leaves] > -tiny {
			return false
		}
		f.pivot(leaves)
		f.reprice()
	}
	return false
}

// meet moves the prices along an edge, in thought, and makes entry the first constraint that they meet: that of a slack, or of an
// assignment, which is found from beyond it by Newton's method on the one that is broken most.
func (f *Fluid) meet(edge []float64) bool {
	step, found := beyond, false
	for r, e := range edge {
		if y := max(f.prices[r], 0); e < -tiny && y/-e < step {
			step, found = y/-e, true
			f.slack(&f.entry, r)
		}
	}
	for range patience {
		for r, e := range edge {
			f.scratch[r] = f.prices[r] + step*e
		}
		if f.best(f.scratch, &f.trial) <= tiny {
			break
		}
		slope := dot(edge, f.trial.rows)
		if slope > -tiny {
			return false
		}
		f.entry, f.trial, found = f.trial, f.entry, true
		next := max((f.entry.worth-dot(f.prices, f.entry.rows))/slope, 0)
		if next >= step {
			break
		}
		step = next
	}
	return found
}

// best writes the assignment whose constraint prices break most to e, and returns by how much.
func (f *Fluid) best(prices []float64, e *column) float64 {
	clear(e.rows)
	e.worth = 1
	late := max(prices[f.types], 0)
	e.rows[f.types] = 1 - f.late
	sum := 1 - late*(1-f.late)
	for c, share := range f.share {
		to, most := nobody, 0.0
		took, chance := f.took[c*f.types:(c+1)*f.types], f.chance[c*f.types:(c+1)*f.types]
		for t := range took {
			if gain := chance[t]*late - took[t]*max(prices[t], 0); gain > most {
				to, most = t, gain
			}
		}
		e.to[c] = int16(to)
		if to != nobody {
			sum += share * most
			e.rows[to] += share * took[to]
			e.rows[f.types] -= share * chance[to]
		}
	}
	return sum
}

// pivot lets entry take the place of a column of the basis; scratch holds the entry in terms of the basis.
func (f *Fluid) pivot(leaves int) {
	f.basis[leaves], f.entry = f.entry, f.basis[leaves]
	if f.pivots++; f.pivots >= refresh {
		f.pivots = 0
		f.invert()
		return
	}
	row, by := f.inverse[leaves], 1/f.scratch[leaves]
	for r := range row {
		row[r] *= by
	}
	for k := range f.inverse {
		if x := f.scratch[k]; k != leaves && x != 0 {
			for r := range row {
				f.inverse[k][r] -= x * row[r]
			}
		}
	}
}

// invert computes the inverse of the basis anew, by elimination with the largest element of each column.
func (f *Fluid) invert() {
	rows := len(f.basis)
	wide := make([][]float64, rows) // the matrix by row, and beside it what becomes its inverse
	for r := range wide {
		wide[r] = make([]float64, 2*rows)
		for k := range f.basis {
			wide[r][k] = f.basis[k].rows[r]
		}
		wide[r][rows+r] = 1
	}
	for k := range rows {
		at := k
		for r := k; r < rows; r++ {
			if math.Abs(wide[r][k]) > math.Abs(wide[at][k]) {
				at = r
			}
		}
		wide[k], wide[at] = wide[at], wide[k]
		if math.Abs(wide[k][k]) < tiny {
			f.slacks()
			return
		}
		by := 1 / wide[k][k]
		for j := k; j < 2*rows; j++ {
			wide[k][j] *= by
		}
		for r := range rows {
			if x := wide[r][k]; r != k && x != 0 {
				for j := k; j < 2*rows; j++ {
					wide[r][j] -= x * wide[k][j]
				}
			}
		}
	}
	for k := range rows {
		copy(f.inverse[k], wide[k][rows:])
	}
}

// reprice computes the prices that a basis implies.
func (f *Fluid) reprice() {
	clear(f.prices)
	for k := range f.basis {
		if worth := f.basis[k].worth; worth != 0 {
			for r, x := range f.inverse[k] {
				f.prices[r] += worth * x
			}
		}
	}
}

// amount computes how much a pool, grown a little, lets the basis have of each column.
func (f *Fluid) amount(p Pool) {
	for k, row := range f.inverse {
		x := growth * row[f.types]
		for t, n := range p {
			x += (float64(n) + growth*float64(t+2)) * row[t]
		}
		f.amounts[k] = x
	}
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
