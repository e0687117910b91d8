package kairos

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Every figure, measured too coarsely to mean anything, gives rows that are numbers and charts that can be drawn. It
// gives the same bytes twice. The rows of a figure depend neither on the other figures that run nor on parallelism,
// although figures share measurements.
func TestEveryFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	ask := func(parallel, seeds int, names ...string) (*reproduce.Outcome, error) {
		run := newRunner(reproduce.Request{Figures: names, Parallel: parallel, Seeds: seeds})
		run.draws, run.rentalResolution, run.exploreSpan = 1, 0.25, time.Minute
		run.varied = models[:longtest.Of(1, len(models))]
		run.fine = precision{queries: 150, runs: 1, resolution: 0.5, rough: true}
		run.large = run.fine
		run.coarse = precision{queries: 100, runs: 1, resolution: 0.5, rough: true}
		return study.Run(t.Context(), run)
	}
	of := func(o *reproduce.Outcome, figure string) (rows []reproduce.Row) {
		for _, r := range o.Rows {
			if r.Figure == figure {
				rows = append(rows, r)
			}
		}
		return rows
	}
	all := figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) { return ask(parallel, 1) })
	figures := slices.DeleteFunc(slices.Clone(study.Figures),
		func(f reproduce.Declaration[*runner]) bool { return f.OnRequest })
	for _, f := range figures {
		if len(of(all, f.Name)) == 0 {
			t.Errorf("figure %s has no row", f.Name)
		}
	}
	for _, r := range all.Rows {
		if math.IsNaN(r.Measured) || math.IsInf(r.Measured, 0) {
			t.Errorf("%+v", r)
		}
	}
	if len(all.Charts) != len(figures)-1 { // P is numbers alone
		t.Errorf("%d charts of %d figures", len(all.Charts), len(figures))
	}
	for _, c := range all.Charts {
		if err := c.PNG(&bytes.Buffer{}); err != nil {
			t.Errorf("chart %s: %v", c.Name, err)
		}
	}
	some, err := ask(1, 1, "B", "10")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"B", "10"} {
		if !reflect.DeepEqual(of(all, name), of(some, name)) {
			t.Errorf("figure %s comes out differently beside others", name)
		}
	}
	three, err := ask(2, 3, "8", "12")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range three.Rows {
		if r.Quantity == throughputRow && r.Seeds != 3 || r.Low > r.Measured || r.High < r.Measured {
			t.Errorf("with three seeds: %+v", r)
		}
	}
}
