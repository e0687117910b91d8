// Package assign solves rectangular minimum-cost assignment: it pairs rows with columns, each at most once and as many
// as possible, at the least sum of costs.
//
// It is the algorithm of R. Jonker and A. Volgenant ("A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", Computing 38, 1987) without its column reduction, which holds for square matrices only. D. F.
// Crouse ("On implementing 2D rectangular assignment algorithms", IEEE TAES 52, 2016) shows that the other steps only
// need column prices that are at most zero, and zero where a column stays free.
//
// With more rows than columns Crouse solves the transpose. That is fast while columns want different rows. Otherwise
// this package solves a square first and then inserts the remaining rows, each of which competes with those that have a
// column: this takes fewer searches.
package assign

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Solver holds the memory of a solution, so that solving allocates nothing once it has grown. The zero value is ready.
// It is not for concurrent use.
type Solver struct {
	// Warm starts with the prices of the last solution if there are as many columns as then and no fewer rows. That is
	// faster when problems that follow each other are alike, and slower when they are not.
	Warm bool

	transposed []float64 // the matrix with rows and columns exchanged
	column     []int32   // by row: its column, or -1
	row        []int32   // by column: its row, or -1
	u, v       []float64 // prices (dual variables) of rows and columns
	unassigned []int32   // rows without a column so far

	distance    []float64       // by column, of the current search
	reachedFrom []int32         // by column: the row from which the search reached it
	settled     []settledColumn // columns whose distance is final

	seen    []int32 // by row: 1 + the last row for which it was visited
	takenBy []int32 // by row: the row that takes its column
	queue   []int32
}

// Solve fills match, by row, with the column of each row, or -1 for a row that gets none because there are fewer
// columns than rows. It returns the sum of the costs. cost[r*cols+c] is the cost of row r in column c; all costs must
// be finite. Solve keeps neither slice. It takes O(n^2 m) time for n = min(rows, cols) and m = max(rows, cols).
//
// Of several assignments with the same cost up to rounding (2^-43 of the largest cost), the result is the
// lexicographically first: the first row gets the lowest column that it can get, then the second, and so on. No column
// counts as the highest.
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

// Duals returns the dual prices of rows and columns that prove the last solution by complementary slackness. They
// belong to the Solver and hold until the next call of Solve.
func (s *Solver) Duals() (rows, cols []float64) { return s.u, s.v }

// largest returns the largest magnitude. It compares bits as integers: infinities and NaN are larger than every number.
func largest(cost []float64) float64 {
	var most uint64
	for _, x := range cost {
		if b := math.Float64bits(x) &^ (1 << 63); b > most {
			most = b
		}
	}
	return math.Float64frombits(most)
}

// notFinite names the first cost that is not finite.
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

// minimaDiffer reports whether a sample of columns have their smallest costs in different rows. Then few searches solve
// the transpose. If all columns want the same rows, nearly each of them takes a search.
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

// transpose writes the matrix with rows and columns exchanged, in blocks that fit the cache.
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

// resized returns a slice of length n, in the memory of s where it is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 1<<bits.Len(uint(n)))
	}
	return s[:n]
}
