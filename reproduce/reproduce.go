// Package reproduce holds the papers' experiments, one folder each, run from numbers carried there; and the shape in
// which every one of them answers: what was published beside what was measured.
package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/measure/profiler/operators"
	"github.com/sluice-serving/sluice/planner/ramsis"
)

// Request is what a paper is asked for.
type Request struct {
	Figures  []string // by name; none means all
	Seeds    int      // runs of everything that draws by chance: seeds 1 to Seeds; at least 1
	Parallel int      // runs at once
	Solver   milp.Solver
	// Arrivals is a folder with the authors' own arrival times, where the paper's licence keeps them out of this
	// project; empty draws them anew from what is carried.
	Arrivals string
	// Policies keeps the policies that RAMSIS makes in advance, which take far longer than what is simulated with them;
	// nil makes them anew.
	Policies ramsis.Store
	// Runtime brings up what runs models, for figures about real ones; nil where there is none.
	Runtime  func() (operators.Runtime, error)
	Progress func(share float64, what string)
}

// Outcome is what a paper answers.
type Outcome struct {
	Rows   []Row
	Charts []Chart
	// Notes are what a reader has to know, one sentence each.
	Notes []string
}

// Figure is a part of a paper that can be asked for.
type Figure struct {
	Name string // such as 4
	Doc  string // what it shows, one line
}

// Paper is a paper's experiments.
type Paper struct {
	Name    string
	Title   string
	Figures []Figure
	Run     func(context.Context, Request) (*Outcome, error)
}

// Check fails for a figure that the paper does not have.
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
