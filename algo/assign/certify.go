package assign

import (
	"fmt"
	"math"
)

// Certify reports why match is not proven to be a cheapest assignment by the dual prices u of rows and v of columns;
// nil means that it is. It checks complementary slackness up to tolerance: no reduced cost (cost less both prices) is
// negative, those of matched pairs are zero, and on the longer side no price is above zero and free rows or columns
// have price zero. It knows nothing of how the prices were found.
func Certify(rows, cols int, cost []float64, match []int32, u, v []float64, tolerance float64) error {
	taken := make([]bool, cols)
	pairs := 0
	for r, c := range match {
		if c < 0 {
			continue
		}
		if int(c) >= cols || taken[c] {
			return fmt.Errorf("assign: row %d has column %d, which does not exist or is taken", r, c)
		}
		taken[c] = true
		pairs++
		if d := cost[r*cols+int(c)] - u[r] - v[c]; !(math.Abs(d) <= tolerance) {
			return fmt.Errorf("assign: row %d and column %d are matched and their reduced cost is %v", r, c, d)
		}
	}
	if pairs != min(rows, cols) {
		return fmt.Errorf("assign: %d pairs, %d rows and %d columns give %d", pairs, rows, cols, min(rows, cols))
	}
	for at, x := range cost {
		if d := x - u[at/cols] - v[at%cols]; !(d >= -tolerance) {
			return fmt.Errorf("assign: row %d and column %d have reduced cost %v", at/cols, at%cols, d)
		}
	}
	if err := checkFree("row", rows > cols, u, tolerance, func(at int) bool { return match[at] < 0 }); err != nil {
		return err
	}
	return checkFree("column", cols > rows, v, tolerance, func(at int) bool { return !taken[at] })
}

// checkFree checks the prices of one side. longer says that the side has free members; left reports whether one is
// free.
func checkFree(what string, longer bool, price []float64, tolerance float64, left func(int) bool) error {
	for at, p := range price {
		if longer && (p > tolerance || left(at) && p < -tolerance) {
			return fmt.Errorf("assign: %s %d has price %v: want none above zero, and zero where it is free", what, at,
				p)
		}
	}
	return nil
}
