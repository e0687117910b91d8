package ramsis

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Every figure gives the same bytes twice, whatever runs at the same time.
func TestFiguresAreTheSameTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	solver := highstest.Solver(t)
	sameTwice := func(keep func(system string) bool, names ...string) {
		figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) {
			run, err := newRunner(reproduce.Request{Figures: names, Seeds: 1, Parallel: parallel, Solver: solver})
			if err != nil {
				return nil, err
			}
			run.rates, run.workers, run.constantSpan = []float64{400}, []float64{20}, time.Second
			run.patternRates, run.shapes, run.patternSpan = []float64{400}, []float64{0.25}, 12*time.Second
			run.systems = slices.DeleteFunc(run.systems, func(s systems.System) bool { return !keep(s.Name) })
			for i := range run.systems {
				run.systems[i].Options.Policies.Rates = []float64{1600, 2000}
			}
			if run.trace, err = newTraceLoad(longtest.Of[time.Duration](1, 3) * time.Second); err != nil {
				return nil, err
			}
			run.trace.policyRates = []float64{1600, 2000}
			return study.Run(t.Context(), run)
		})
	}
	onTrace := []string{"5", "T3", "A4"}
	var others []string
	for _, f := range study.Figures {
		if !f.OnRequest && !slices.Contains(onTrace, f.Name) {
			others = append(others, f.Name)
		}
	}
	sameTwice(func(string) bool { return true }, append(others, "G")...)
	// The policies of tidal take long to compute where the load is not known.
	sameTwice(func(system string) bool { return system != "tidal" }, onTrace...)
}
