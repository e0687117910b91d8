package milp

import (
	"fmt"
	"math"
)

// Sizes beyond which a program is refused: far above what any planner here makes, far below what would exhaust memory.
const (
	MaxColumns = 1 << 20
	MaxRows    = 1 << 20
	MaxTerms   = 1 << 24
)

// Check reports the first error in the program: a number that is not finite, a term that names no column or one twice,
// or a size beyond the limits.
func (p *Program) Check() error {
	if len(p.Columns) > MaxColumns || len(p.Rows) > MaxRows {
		return fmt.Errorf("program: %d columns and %d rows, at most %d and %d are taken", len(p.Columns), len(p.Rows),
			MaxColumns, MaxRows)
	}
	for j, c := range p.Columns {
		if !finite(c.Objective) {
			return fmt.Errorf("program: column %d: objective is %v, want a finite number", j, c.Objective)
		}
		if err := bounds(c.Lower, c.Upper); err != nil {
			return fmt.Errorf("program: column %d: %w", j, err)
		}
	}
	terms := 0
	seen := make([]int, len(p.Columns)) // by column: 1 + the last row that named it
	for i, r := range p.Rows {
		if err := bounds(r.Lower, r.Upper); err != nil {
			return fmt.Errorf("program: row %d: %w", i, err)
		}
		if terms += len(r.Terms); terms > MaxTerms {
			return fmt.Errorf("program: more than %d terms", MaxTerms)
		}
		for _, t := range r.Terms {
			if t.Column < 0 || t.Column >= len(p.Columns) {
				return fmt.Errorf("program: row %d names column %d of %d", i, t.Column, len(p.Columns))
			}
			if !finite(t.Coef) {
				return fmt.Errorf("program: row %d, column %d: coefficient is %v, want a finite number", i, t.Column,
					t.Coef)
			}
			if seen[t.Column] == i+1 {
				return fmt.Errorf("program: row %d names column %d twice", i, t.Column)
			}
			seen[t.Column] = i + 1
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func bounds(lower, upper float64) error {
	if math.IsNaN(lower) || math.IsNaN(upper) || math.IsInf(lower, 1) || math.IsInf(upper, -1) {
		return fmt.Errorf("bounds are %v and %v, want numbers, or -Inf below and +Inf above", lower, upper)
	}
	return nil
}

// Violation returns by how much a point, by column, breaks the worst of the program's rows and bounds, relative to the
// magnitude of the compared numbers (at least 1). It does not look at integrality.
func (p *Program) Violation(values []float64) float64 {
	worst := 0.0
	note := func(v, lower, upper, size float64) {
		worst = max(worst, max(lower-v, v-upper)/max(size, 1))
	}
	for j, c := range p.Columns {
		note(values[j], c.Lower, c.Upper, math.Abs(values[j]))
	}
	for _, r := range p.Rows {
		sum, size := 0.0, 0.0
		for _, t := range r.Terms {
			sum += t.Coef * values[t.Column]
			size = max(size, math.Abs(t.Coef*values[t.Column]))
		}
		note(sum, r.Lower, r.Upper, size)
	}
	return worst
}
