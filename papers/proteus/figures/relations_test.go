package proteus

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The paper's relations hold: of the systems that scale accuracy Proteus loses least and violates least. The short form
// has the first third of each trace. The long form asks twice: the same request gives the same bytes, whatever runs at
// once.
func TestRelations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	s := highstest.Solver(t)
	ask := func(parallel int, names ...string) ([]reproduce.Row, []byte) {
		run, err := newRunner(reproduce.Request{Figures: names, Seeds: 1, Parallel: parallel, Solver: s})
		if err != nil {
			t.Fatal(err)
		}
		if !longtest.Of(false, true) {
			run.batchingSpan /= 3
			for _, x := range run.traces {
				for a, c := range x.counts {
					x.counts[a] = c[:len(c)/3]
				}
			}
		}
		o, err := study.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(o.Rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range o.Charts {
			if err := c.PNG(&bytes.Buffer{}); err != nil {
				t.Errorf("chart %s: %v", c.Name, err)
			}
		}
		return o.Rows, text
	}
	rows, first := ask(2, "5")
	if longtest.Of(false, true) {
		if _, second := ask(1, "5"); !bytes.Equal(first, second) {
			t.Error("figure 5 came out differently the second time")
		}
	}
	value := func(system, quantity string) float64 {
		for _, r := range rows {
			if r.System == system && r.Quantity == quantity {
				return r.Measured
			}
		}
		t.Fatalf("no row for %s, %s", system, quantity)
		return 0
	}
	for _, other := range []string{"infaas-accuracy", "sommelier"} {
		for _, q := range []string{"SLO violations", "maximum accuracy drop"} {
			if a, b := value("proteus", q), value(other, q); a > b {
				t.Errorf("%s: proteus %.3f, %s %.3f", q, a, other, b)
			}
		}
	}
	if a, b := value("proteus", "SLO violations"), value("clipper-ha", "SLO violations"); a > b/5 {
		t.Errorf("violations: proteus %.2f %%, clipper-ha %.2f %%", a, b)
	}
	if far := value("proteus with foresight", "furthest below the exact plan"); far > 0.5 {
		t.Errorf("with foresight a window is %.2f points below its exact plan", far)
	}
	rows, _ = ask(2, "6")
	for _, r := range rows {
		if r.Quantity == "violations over adaptive's" && r.Setting["arrivals"] == "Poisson" &&
			r.Setting["load"] == "100 %" && r.Measured < 1.2 {
			t.Errorf("%s has only %.2f times adaptive's violations at capacity", r.System, r.Measured)
		}
	}
}
