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
func figureW(run *runner) error {
	base := run.systemIndex("ramsis")
	if base < 0 {
		return nil
	}
	for _, rate := range run.rates {
		on, err := run.constantLoad(rate)
		if err != nil {
			return err
		}
		for _, s := range run.systems {
			if s.Name == "ramsis" || s.Name == "greedy" {
				continue
			}
			t := run.AddTask(fmt.Sprintf("workers of %s for %v queries/s", s.Name, rate), 8*int(on.expected()),
				run.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return run.workersNeeded(ctx, s, run.systems[base], on, seed)
				})
			run.Report(func(o *reproduce.Outcome) error {
				var values []float64
				for _, d := range t.Results {
					values = append(values, d.(float64))
				}
				addRow(o, row("W", s.Name, "workers for what ramsis does with 60", "",
					map[string]string{"load": formatNumber(rate)}), values...)
				return nil
			})
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		o.Notes = append(o.Notes, fmt.Sprintf(
			"A system without a row in Figure W does not get there with %d workers: Jellyfish+ never runs a model "+
				"that takes more than half the objective.", mostWorkers))
		return nil
	})
	return nil
}

// workersNeeded returns the smallest number of workers with which system s matches base with 60 workers. It is NaN when
// base violates too much, or when mostWorkers are not enough. It takes for granted that more workers are never worse.
func (run *runner) workersNeeded(ctx context.Context, s, base systems.System, on *load, seed uint64) (float64, error) {
	simulateWith := func(s systems.System, workers int) (*result, error) {
		at := a4Setup
		at.workers = workers
		w, err := newEnvironment(run.Solver, at)
		if err != nil {
			return nil, err
		}
		w.Policies = run.Policies
		return newJob(w, s, on).simulate(ctx, seed)
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
