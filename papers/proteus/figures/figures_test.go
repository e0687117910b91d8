package proteus

import (
	"testing"
	"time"

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
		run, err := newRunner(reproduce.Request{Seeds: 1, Parallel: parallel, Solver: solver})
		if err != nil {
			return nil, err
		}
		run.batchingSpan, run.sizes = time.Second, sizes[:1]
		for _, x := range run.traces {
			for a, c := range x.counts {
				x.counts[a] = c[:min(len(c), longtest.Of(3, 12))]
			}
		}
		return study.Run(t.Context(), run)
	})
}
