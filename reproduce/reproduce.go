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
	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/planner/ramsis"
)

// Row is one number.
type Row struct {
	Paper    string            `json:"paper"`
	Figure   string            `json:"figure"`
	System   string            `json:"system"`
	Quantity string            `json:"quantity"`
	Unit     string            `json:"unit"`
	Setting  map[string]string `json:"setting"`
	// Published is what the source gives; nil when it gives nothing for this row.
	Published *float64 `json:"published"`
	// Measured is the mean over the seeds, Low and High the smallest and the largest.
	Measured float64 `json:"measured"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Seeds    int     `json:"seeds"`
	// Source says where the published number stands.
	Source string `json:"source,omitempty"`
}

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

// Chart is a drawing and the name of its file, without an extension.
type Chart struct {
	Name string
	*plot.Chart
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

// AddRow notes a quantity that was measured once for every seed.
func (o *Outcome) AddRow(r Row, values ...float64) {
	r.Seeds = len(values)
	if len(values) == 0 {
		return
	}
	r.Low, r.High = slices.Min(values), slices.Max(values)
	for _, v := range values {
		r.Measured += v / float64(len(values))
	}
	// A mean of equal numbers is that number, whatever the sum's rounding.
	r.Measured = min(max(r.Measured, r.Low), r.High)
	if r.Setting == nil {
		r.Setting = map[string]string{}
	}
	o.Rows = append(o.Rows, r)
}

// Published makes the pointer of a Row.
func Published(v float64) *float64 { return &v }
