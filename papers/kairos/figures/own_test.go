package kairos

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// On one fast machine and many slow ones the default carries what kairos-schedule does: it keeps the fast machine for
// queries that only it serves in time. Before it did, it carried a tenth less of ncf and rm2.
func TestDefaultBesideSchedule(t *testing.T) {
	run := newRunner(reproduce.Request{Seeds: 1})
	for _, model := range []string{"ncf", "rm2", "wnd"} {
		at := func(system string, by arrivals) float64 {
			tr := trial{setup: paperSetup(model), pool: pool{1, 0, 13, 0}, system: system, arrivals: by}
			got, err := run.measure(t.Context(), tr, run.chosen, 1)
			if err != nil {
				t.Fatal(err)
			}
			return got.Rate
		}
		for _, by := range []arrivals{wholeMillis, poisson} {
			got, want := at(systems.Default, by), at("kairos-schedule", by)
			if t.Logf("%s, %v: %.0f queries/s, kairos-schedule %.0f", model, by, got, want); got < 0.95*want {
				t.Errorf("%s, %v: %.0f queries/s, and %.0f by kairos-schedule", model, by, got, want)
			}
		}
	}
}
