// Package assign is rectangular minimum-cost assignment: as many rows and columns as there are pairs for, each at most
// once, so that the costs of the pairs add up to the least.
//
// It is the algorithm of R. Jonker and A. Volgenant ("A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", Computing 38, 1987) without its column reduction, which holds for square matrices only: D. F.
// Crouse ("On implementing 2D rectangular assignment algorithms", IEEE TAES 52, 2016) shows that the rest needs no more
// than prices of columns that are at most zero and are zero where a column stays free. With more rows than columns he
// solves the transpose, which is good while columns want different rows; otherwise the rows that are too many come here
// after a square and compete with those that have a column, which takes fewer searches.
package assign

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Solver holds the memory of a solution, so that solving allocates nothing once it has grown. The zero value is ready.
type Solver struct {
	// Warm begins with the prices of the last solution where there are as many columns as then and no fewer rows. It is
	// faster when problems follow each other that are much alike, and slower when they are not.
	Warm bool

	transposed []float64 // the matrix with rows and columns exchanged
	column     []int32   // by row: the column that it has, or -1
	row        []int32   // by column: the row that has it, or -1
	u, v       []float64 // prices of rows and columns
	unassigned []int32   // rows without a column so far

	distance    []float64       // by column, of the search at hand
	reachedFrom []int32         // by column: the row from which it was reached
	settled     []settledColumn // whose distance is final

	seen     []int32 // by row: the last row, plus one, for whose sake it was met
	drivenBy []int32 // by row: the one that drives it out
	queue    []int32
}

// Solve fills match, one entry a row, with the column of each row, or -1 where there are fewer columns than rows, and
// returns the sum of the costs. cost[r*cols+c] is the cost of row r in column c; all must be finite.
//
// Of several assignments that cost the same up to rounding (2^-43 of the largest cost), it is the one that comes first
// when they are compared row by row: the first row has the lowest column it can have, then the second, and no column is
// last.
func (s *Solver) Solve(rows, cols int, cost []float64, match []int32) (float64, error) {
	if rows < 0 || cols < 0 || len(cost) != rows*cols || len(match) != rows {
		return 0, fmt.Errorf("assign: %d costs and %d places in match do not make a matrix of %d rows and %d columns",
			len(cost), len(match), rows, cols)
	}
	most := largest(cost)
	if math.IsInf(most, 0) || math.IsNaN(most) {
		return 0, notFinite(cols, cost)
	}
	if rows > cols && minimaDiffer(rows, cols, cost) {
		s.transposed = resized(s.transposed, rows*cols)
		transpose(s.transposed, rows, cols, cost)
		s.solve(cols, rows, s.transposed, most)
		s.column, s.row, s.u, s.v = s.row, s.column, s.v, s.u
	} else {
		s.solve(rows, cols, cost, most)
	}
	s.lexicographicFirst(rows, cols, cost, most*0x1p-43)
	copy(match, s.column)
	total := 0.0
	for r, c := range match {
		if c >= 0 {
			total += cost[r*cols+int(c)]
		}
	}
	return total, nil
}

// Duals returns the prices of rows and columns that prove the last solution; see Certify. They hold until the next call
// of Solve.
func (s *Solver) Duals() (rows, cols []float64) { return s.u, s.v }

// largest returns the largest magnitude, as integers: an infinity and what is not a number are larger than every
// number.
func largest(cost []float64) float64 {
	var most uint64
	for _, x := range cost {
		if b := math.Float64bits(x) &^ (1 << 63); b > most {
			most = b
		}
	}
	return math.Float64frombits(most)
}

func notFinite(cols int, cost []float64) error {
	for at, x := range cost {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return fmt.Errorf(
				"assign: the cost of row %d in column %d is %v: use a large number for a pair to be avoided", at/cols,
				at%cols, x)
		}
	}
	return nil
}

// apart tells whether a few columns, looked at as a sample, have their smallest costs in different rows. Then the
// transpose is solved with few searches; when all columns want the same rows, it takes one for nearly each of them.
func minimaDiffer(rows, cols int, cost []float64) bool {
	const sample = 8
	var best [sample]int
	n := min(sample, cols)
	same := 0
	for k := range n {
		at := k * cols / n
		low := cost[at]
		for r := 1; r < rows; r++ {
			if x := cost[r*cols+at]; x < low {
				low, best[k] = x, r
			}
		}
		if slices.Contains(best[:k], best[k]) {
			same++
		}
	}
	return same <= n/4
}

// turn writes the matrix with rows and columns exchanged, in blocks that stay in the cache.
func transpose(to []float64, rows, cols int, cost []float64) {
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

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 1<<bits.Len(uint(n)))
	}
	return s[:n]
}
