// Package assign is rectangular minimum-cost assignment: as many rows and columns as there are pairs for, each at most once,
// so that the costs of the pairs add up to the least.
//
// It is the algorithm of R. Jonker and A. Volgenant ("A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", Computing 38, 1987) without its column reduction, which holds for square matrices only: D. F. Crouse ("On
// implementing 2D rectangular assignment algorithms", IEEE TAES 52, 2016) shows that the rest needs prices of columns that
// are at most zero and are zero where a column stays free.
package assign

import (
	"fmt"
	"math"
	"math/bits"
)

// Solver holds the memory of a solution, so that solving allocates nothing once it has grown. The zero value is ready.
type Solver struct {
	turned []float64 // the matrix, columns and rows exchanged: the longer side is the one that is scanned
	line   []int32   // by agent, on the shorter side: the line it has, on the longer
	agent  []int32   // by line: the agent that has it, or -1
	price  []float64 // by line
	rent   []float64 // by agent
	waits  []int32   // agents without a line

	distance []float64 // by line, of the search at hand
	before   []int32   // by line: the agent from which it was reached
	order    []int32   // lines, those whose distance is final first

	seen  []int32 // by row: the number of the last search that met it
	from  []int32
	queue []int32

	u, v []float64
}

// Solve fills match, one entry a row, with the column of each row, or -1 where there are fewer columns than rows, and returns the
// sum of the costs. cost[r*cols+c] is the cost of row r in column c; all must be finite.
//
// Of several assignments that cost the same up to rounding (2^-43 of the largest cost), it is the one that comes first when they
// are compared row by row: the first row has the lowest column it can have, then the second, and no column is last.
func (s *Solver) Solve(rows, cols int, cost []float64, match []int32) (float64, error) {
	if rows < 0 || cols < 0 || len(cost) != rows*cols || len(match) != rows {
		return 0, fmt.Errorf("assign: %d costs and %d places in match do not make a matrix of %d rows and %d columns", len(cost), len(match), rows, cols)
	}
	most := largest(cost)
	if math.IsInf(most, 0) || math.IsNaN(most) {
		return 0, refuse(cols, cost)
	}
	s.u, s.v = sized(s.u, rows), sized(s.v, cols)
	tolerance := most * 0x1p-43
	if rows <= cols {
		s.solve(rows, cols, cost)
		copy(match, s.line)
		copy(s.u, s.rent)
		copy(s.v, s.price)
		s.first(rows, cols, cost, match, s.agent, tolerance)
	} else {
		s.turned = sized(s.turned, rows*cols)
		turn(s.turned, rows, cols, cost)
		s.solve(cols, rows, s.turned)
		copy(match, s.agent)
		copy(s.u, s.price)
		copy(s.v, s.rent)
		s.first(rows, cols, cost, match, s.line, tolerance)
	}
	total := 0.0
	for r, c := range match {
		if c >= 0 {
			total += cost[r*cols+int(c)]
		}
	}
	return total, nil
}

// Duals returns the prices of rows and columns that prove the last solution; see Certify. They hold until the next call of Solve.
func (s *Solver) Duals() (rows, cols []float64) { return s.u, s.v }

// largest returns the largest magnitude, as integers: an infinity and what is not a number are larger than every number.
func largest(cost []float64) float64 {
	var most uint64
	for _, x := range cost {
		if b := math.Float64bits(x) &^ (1 << 63); b > most {
			most = b
		}
	}
	return math.Float64frombits(most)
}

func refuse(cols int, cost []float64) error {
	for at, x := range cost {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return fmt.Errorf("assign: the cost of row %d in column %d is %v: use a large number for a pair to be avoided", at/cols, at%cols, x)
		}
	}
	return nil
}

// turn writes the matrix with rows and columns exchanged, in blocks that stay in the cache.
func turn(to []float64, rows, cols int, cost []float64) {
	const block = 32
	for r0 := 0; r0 < rows; r0 += block {
		r1 := min(r0+block, rows)
		for c := range cols {
			out := to[c*rows+r0 : c*rows+r1]
			at := r0*cols + c
			for k := range out {
				out[k] = cost[at]
				at += cols
			}
		}
	}
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 1<<bits.Len(uint(n)))
	}
	return s[:n]
}
