package infless

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Every figure gives the same bytes twice, whatever runs at the same time.
func TestFiguresAreTheSameTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	solver := highstest.Solver(t)
	figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) {
		run := newRunner(reproduce.Request{Seeds: 1, Parallel: parallel, Solver: solver})
		run.steps, run.stressQueries = longtest.Of(1, 4), 3000 // fewer end before any can be late
		run.callTraces = []callTrace{callTraces[0], callTraces[3]}
		return study.Run(t.Context(), run)
	})
}
