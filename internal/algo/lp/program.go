package lp

import (
	"fmt"
	"math"
)

// Term is a coefficient of a column.
type Term struct {
	Row  int
	Coef float64
}

// Program is a linear program and the state of its solution. The zero value has no rows; Reset gives it some. It is not
// safe for concurrent use.
type Program struct {
	limits []float64 // b, by row
	cost   []float64 // by column
	upper  []float64
	starts []int32 // of a column's terms; one more than there are columns
	rows   []int32 // of the terms
	coefs  []float64

	basis     []int32   // by row: the column that is basic there; -1-r for the slack of row r
	at        []uint8   // by column: where it is while it is not basic
	values    []float64 // of the basic variables, by row
	shifted   []float64 // limits with the perturbation
	inverse   []float64 // of the basis, row by row
	prices    []float64 // by row, of the present basis
	direction []float64 // scratch: the entering column in terms of the basis
	ratios    []float64 // scratch: by row how far the entering column can go
	ready     bool      // the basis and its inverse belong to the program as it is
	pivots    int       // since the inverse was computed afresh
	fresh     []float64 // scratch of refactor
	updated   bool      // prices were brought up to date since they were computed
	used      []int32   // scratch: where a row is not 0
}

// Where a column is.
const (
	atLower uint8 = iota
	atUpper
	basic
)

// Tolerances. Programs are expected to be scaled so that coefficients and limits lie within some orders of magnitude
// of 1.
const (
	// optimalityTolerance is the reduced cost below which a column does not enter.
	optimalityTolerance = 1e-9
	// pivotTolerance is the least magnitude of a pivot element.
	pivotTolerance = 1e-9
	// perturbation is the size of the perturbation of the limits during a solve, relative to 1 + b. Rows with a limit
	// of 0 make most bases degenerate, and without it the method may cycle.
	perturbation = 1e-10
	// refactorAfter is the number of pivots after which the inverse is computed anew, so that rounding errors do not
	// add up; a quarter of the rows where that is more.
	refactorAfter = 128
)

// Reset empties the program and gives it rows with a limit of 0 each.
func (p *Program) Reset(rows int) {
	p.limits = zeroed(p.limits, rows)
	p.cost, p.upper, p.at = p.cost[:0], p.upper[:0], p.at[:0]
	p.starts = append(p.starts[:0], 0)
	p.rows, p.coefs = p.rows[:0], p.coefs[:0]
	p.ready = false
}

// Limit sets the limit of a row. It must be at least 0 and finite.
func (p *Program) Limit(row int, b float64) {
	if !(b >= 0) || math.IsInf(b, 1) {
		panic(fmt.Sprintf("lp: limit %v of row %d: it must be finite and at least 0", b, row))
	}
	p.limits[row] = b
}

// Add adds a column and returns its index. Upper may be infinite. Terms name each row at most once and are copied;
// terms of 0 are left out.
func (p *Program) Add(cost, upper float64, terms ...Term) int {
	for _, t := range terms {
		if t.Coef != 0 {
			p.rows, p.coefs = append(p.rows, int32(t.Row)), append(p.coefs, t.Coef)
		}
	}
	p.starts = append(p.starts, int32(len(p.rows)))
	p.cost, p.upper, p.at = append(p.cost, cost), append(p.upper, upper), append(p.at, atLower)
	return len(p.cost) - 1
}

// Cost sets the cost of a column. The next solve continues from the present basis.
func (p *Program) Cost(column int, c float64) { p.cost[column] = c }

// Upper sets the upper bound of a column, which may be infinite. The next solve goes on from the present basis if that
// is still feasible.
func (p *Program) Upper(column int, upper float64) { p.upper[column] = upper }

// Dual returns the dual price of a row at the solution found last: the increase of the objective for one more unit of
// its limit. It is at least 0 at an optimum.
func (p *Program) Dual(row int) float64 { return p.prices[row] }

// ReducedCost returns the reduced cost that a column with these terms would have at the solution found last: its cost
// less the dual prices of the rows it uses. At an optimum no column with value 0 has more than the tolerance.
func (p *Program) ReducedCost(cost float64, terms ...Term) float64 {
	for _, t := range terms {
		cost -= p.prices[t.Row] * t.Coef
	}
	return cost
}

// Value returns the value of a column at the solution found last.
func (p *Program) Value(column int) float64 {
	switch p.at[column] {
	case atUpper:
		return p.upper[column]
	case basic:
		for r, b := range p.basis {
			if int(b) == column {
				return max(p.values[r], 0)
			}
		}
	}
	return 0
}

// Solution writes the values of all columns, by index, into x, which is grown as needed, and returns it.
func (p *Program) Solution(x []float64) []float64 {
	x = zeroed(x, len(p.cost))
	for j, at := range p.at {
		if at == atUpper {
			x[j] = p.upper[j]
		}
	}
	for r, b := range p.basis {
		if b >= 0 {
			x[b] = max(p.values[r], 0)
		}
	}
	return x
}

// Objective returns the objective of the solution found last.
func (p *Program) Objective() (sum float64) {
	for j, at := range p.at {
		if at == atUpper {
			sum += p.cost[j] * p.upper[j]
		}
	}
	for r, b := range p.basis {
		if b >= 0 {
			sum += p.cost[b] * max(p.values[r], 0)
		}
	}
	return sum
}

func zeroed(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	x = x[:n]
	clear(x)
	return x
}
