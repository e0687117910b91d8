package ramsis

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

const (
	// mostWorkers is the largest number of workers that is tried.
	mostWorkers = 200
	// toleratedViolations is the rate of violations, in per cent, below which differences do not count.
	toleratedViolations = 0.1
)

// figureW finds how many workers each other system needs to be as accurate as RAMSIS with 60 workers, without more
// violations. It uses the setup of A4 and every constant load that RAMSIS carries.
func figureW(run *runner, f *reproduce.Sheet) error {
	for _, rate := range run.rates {
		on := run.constantLoad(rate)
		for _, s := range run.systems {
			if s.Name == "ramsis" || s.Name == "greedy" {
				continue
			}
			needed := reproduce.Add(run.Runner, fmt.Sprintf("workers of %s for %v queries/s", s.Name, rate),
				8*int(on.expected()), run.Seeds, func(ctx context.Context, seed uint64) (float64, error) {
					return run.workersNeeded(ctx, s, reproduce.System("ramsis"), on, seed)
				})
			f.At("load", rate).Row(s.Name, "workers for what ramsis does with 60", "", reproduce.All(needed))
		}
	}
	f.Note(fmt.Sprintf("A system without a row in Figure W does not get there with %d workers: Jellyfish+ never runs "+
		"a model that takes more than half the objective.", mostWorkers))
	return nil
}

// workersNeeded returns the smallest number of workers with which system s matches base with 60 workers. It is NaN when
// base violates too much, or when mostWorkers are not enough. It takes for granted that more workers are never worse.
func (run *runner) workersNeeded(ctx context.Context, s, base systems.System, on *load, seed uint64) (float64, error) {
	simulateWith := func(s systems.System, workers int) (*result, error) {
		at := a4Setup
		at.workers = workers
		j, err := run.job(at, s, on)
		if err != nil {
			return nil, err
		}
		return j.simulate(ctx, seed)
	}
	want, err := simulateWith(base, a4Setup.workers)
	if err != nil || want.violations >= satisfiableViolations {
		return math.NaN(), err
	}
	var failed error
	n := sort.Search(mostWorkers, func(k int) bool {
		if failed != nil {
			return true
		}
		r, err := simulateWith(s, k+1)
		failed = err
		return err == nil && r.violations <= max(want.violations, toleratedViolations) &&
			r.accuracy >= want.accuracy-0.01
	})
	if failed != nil || n == mostWorkers {
		return math.NaN(), failed
	}
	return float64(n + 1), nil
}
