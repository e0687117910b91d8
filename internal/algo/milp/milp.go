// Package milp defines mixed-integer linear programs as plain data, and the interface of their solvers.
// internal/runtime/highs implements it.
package milp

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Inf is a bound that does not bind; use -Inf below.
var Inf = math.Inf(1)

// Program is: minimise, or maximise, the sum of Objective times column, subject to Lower <= row <= Upper for every row
// and Lower <= column <= Upper for every column, where integer columns are whole numbers.
type Program struct {
	Maximize bool
	Columns  []Column
	Rows     []Row
}

// Column is a decision variable. Its zero bounds fix it at 0.
type Column struct {
	Objective    float64
	Lower, Upper float64
	Integer      bool
}

// Row is a linear constraint. Terms name each column at most once.
type Row struct {
	Lower, Upper float64
	Terms        []Term
}

// Term is a coefficient of a row.
type Term struct {
	Column int
	Coef   float64
}

// Column adds a variable and returns its index.
func (p *Program) Column(c Column) int {
	p.Columns = append(p.Columns, c)
	return len(p.Columns) - 1
}

// Row adds a constraint and returns its index. It keeps terms.
func (p *Program) Row(lower, upper float64, terms ...Term) int {
	p.Rows = append(p.Rows, Row{Lower: lower, Upper: upper, Terms: terms})
	return len(p.Rows) - 1
}

// Limits end a solve early. They count work, not time, so that a result does not depend on the machine; time is up to
// the context.
type Limits struct {
	// Gap is the relative distance between incumbent and bound at which the incumbent is good enough; 0 asks for an
	// optimum within the solver's own tolerance.
	Gap float64
	// AbsoluteGap is the same as an absolute distance; either one is enough.
	AbsoluteGap float64
	// Nodes bounds the search tree; 0 sets no limit.
	Nodes int64
	// Start is a point, by column, that the search may begin with; nil for none. An infeasible one is ignored.
	Start []float64
	// Relax solves the program as if no column were integer.
	Relax bool
	// NoPresolve leaves out what a solver does to make a program smaller first.
	NoPresolve bool
}

// Status is how a solve ended.
type Status uint8

const (
	// Optimal says that Values are within Limits.Gap or Limits.AbsoluteGap of the best there is.
	Optimal Status = iota
	// Feasible says that a limit ended the search. Values satisfy every constraint, and Gap says how good they are
	// proven to be.
	Feasible
	// Infeasible says that no point satisfies the constraints.
	Infeasible
	// Unbounded says that the objective has no limit.
	Unbounded
	// NoSolution says that a limit ended the search before any feasible point was found. There may be one.
	NoSolution
)

var statusNames = [...]string{"optimal", "feasible", "infeasible", "unbounded", "no solution"}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", s)
}

// Solution is the outcome of a solve. Values is set with Optimal and Feasible only.
type Solution struct {
	Status    Status
	Values    []float64 // by column; integer columns hold whole numbers exactly
	Objective float64   // of Values
	Bound     float64   // no feasible point is better than this
	Gap       float64   // |Bound - Objective| / max(|Objective|, 1e-9)
	Nodes     int64
	// Duals are by row, with Limits.Relax only: by how much Objective changes when the bounds of the row grow by one.
	Duals []float64
}

// ErrMemory says that a program needs more memory than the solver was given.
var ErrMemory = errors.New("the program needs more memory than the solver may use")

// Solver solves programs. It is safe for concurrent use, its answer to a program is always the same, and it returns
// ctx.Err() when ctx ends it. An infeasible or unbounded program is a Status, not an error. An error means that the
// program is not well formed (Check), that memory ran out (ErrMemory), or that the solver itself failed.
type Solver interface {
	Solve(ctx context.Context, p *Program, l Limits) (*Solution, error)
}
