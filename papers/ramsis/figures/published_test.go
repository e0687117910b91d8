package ramsis

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The artifact's evaluation comes out as published, as do the bounds. The short form has three of the ten constant
// loads, and of the trace only that it is drawn. The long form asks for figure H twice: the same request gives the same
// bytes.
func TestPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	s, long := highstest.Solver(t), longtest.Of(false, true)
	ask := func(parallel int, figure string) *reproduce.Outcome {
		run, err := newRunner(reproduce.Request{Figures: []string{figure}, Seeds: 1, Parallel: parallel, Solver: s})
		if err != nil {
			t.Fatal(err)
		}
		if !long {
			run.rates = []float64{800, 2000, 3200}
			// The policies of tidal take long to compute where the load is not known.
			run.systems = slices.DeleteFunc(run.systems, func(s systems.System) bool { return s.Name == "tidal" })
			if run.trace, err = newTraceLoad(2 * time.Second); err != nil {
				t.Fatal(err)
			}
			run.trace.policyRates = []float64{1600, 2000}
		}
		o, err := study.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if long {
		first, err := json.Marshal(ask(2, "H").Rows)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := json.Marshal(ask(1, "H").Rows); err != nil || !bytes.Equal(first, second) {
			t.Errorf("figure H came out differently the second time, %v", err)
		}
	}
	a4 := ask(2, "A4")
	for _, c := range a4.Charts {
		if err := c.PNG(&bytes.Buffer{}); err != nil {
			t.Errorf("chart %s: %v", c.Name, err)
		}
	}
	held := 0
	for _, r := range a4.Rows {
		if r.Published == nil || !long && r.Setting["load"] == "" {
			continue
		}
		within := 0.4 // points; what chance and the authors' rounding leave
		switch {
		case r.System == "fluid bound", r.System == "jellyfish+":
			within = 0.006 // nothing is left to chance
		case r.Quantity == "SLO violations":
			within = 0.1 + 0.1**r.Published
		}
		held++
		if math.Abs(r.Measured-*r.Published) > within {
			t.Errorf("%s, %s, %v: %.3f, published %.3f", r.System, r.Quantity, r.Setting, r.Measured, *r.Published)
		}
	}
	if held < longtest.Of(3*4, 9*4+8) {
		t.Errorf("only %d rows have something published beside them", held)
	}
}
