// Package reproduce runs the experiments of the papers, one folder for each paper. It also defines the form in which
// all of them report: rows with the published number beside the measured one, charts and notes.
package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/papers/ramsis"
)

// Request says which figures of a paper to run, and how.
type Request struct {
	Figures  []string // names of figures; none means all that are not OnRequest
	Seeds    int      // every random experiment runs with so many seeds; at least 1
	First    uint64   // the first of them; 0 means 1
	Parallel int      // experiments that run at the same time
	Solver   milp.Solver
	// Arrivals is a folder with the authors' own arrival times, which the paper's licence keeps out of this project.
	// Empty means that arrivals are drawn from the rates in the embedded data.
	Arrivals string
	// Policies stores the policies that RAMSIS computes in advance. Computing one takes far longer than a simulation
	// with it. Nil means that every run computes them anew.
	Policies ramsis.Store
	// Runtime returns a runtime that runs real models, for the figures that need one. Nil where there is none.
	Runtime  func() (operators.Runtime, error)
	Progress func(share float64, what string)
}

// Outcome is the result of the figures of one paper.
type Outcome struct {
	Rows   []Row
	Charts []Chart
	// Notes explain the rows to the reader, one paragraph each.
	Notes []string
}

// Figure is one figure or table of a paper.
type Figure struct {
	Name string // such as "4" or "T2"
	Doc  string // one line that says what it shows
}

// Paper is one paper with its figures. Run runs the figures of a request that Check accepts.
type Paper struct {
	Name    string
	Title   string
	Figures []Figure
	Run     func(context.Context, Request) (*Outcome, error)
}

// Check returns an error that names the first of figures which the paper does not have, nil when it has them all.
func (p *Paper) Check(figures []string) error {
	names := make([]string, len(p.Figures))
	for i, f := range p.Figures {
		names[i] = f.Name
	}
	for _, f := range figures {
		if !slices.Contains(names, f) {
			return fmt.Errorf("%s has no figure %q here: use one of %s", p.Name, f, strings.Join(names, ", "))
		}
	}
	return nil
}
