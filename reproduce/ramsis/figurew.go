package ramsis

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/systems"
)

const (
	// most workers that are tried.
	mostWorkers = 200
	// tolerated is the violation rate, in per cent, below which it does not matter who violates less.
	tolerated = 0.1
)

// figureW asks, in the setting of A4 and for every constant load that RAMSIS carries on 60 workers, how many workers
// each other system needs to be no less accurate and to violate no more: the cost of a choice, in machines.
func figureW(l *lab) error {
	base := l.find("ramsis")
	if base < 0 {
		return nil
	}
	for _, rate := range constantLoads() {
		on, err := l.constant(rate)
		if err != nil {
			return err
		}
		for _, s := range l.systems {
			if s.Name == "ramsis" || s.Name == "greedy" {
				continue
			}
			t := l.AddTask(fmt.Sprintf("workers of %s for %v queries/s", s.Name, rate), 8*int(on.expected()), l.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return l.enough(ctx, s, l.systems[base], on, seed)
				})
			l.Report(func(o *reproduce.Outcome) error {
				var values []float64
				for _, d := range t.Results {
					values = append(values, d.(float64))
				}
				add(o, row("W", s.Name, "workers for what ramsis does with 60", "",
					map[string]string{"load": name(rate)}), values...)
				return nil
			})
		}
	}
	l.Report(func(o *reproduce.Outcome) error {
		o.Notes = append(o.Notes, fmt.Sprintf(
			"A system without a row in Figure W does not get there with %d workers: Jellyfish+ never runs a model "+
				"that takes more than half the objective.", mostWorkers))
		return nil
	})
	return nil
}

// enough is the smallest number of workers with which a system does what the base does in A4; NaN when the base
// violates too much there, or when no number tried is enough. More workers are taken never to be worse.
func (l *lab) enough(ctx context.Context, s, base systems.System, on *load, seed uint64) (float64, error) {
	run := func(s systems.System, workers int) (*result, error) {
		at := a4
		at.workers = workers
		w, err := world(l.Solver, at)
		if err != nil {
			return nil, err
		}
		w.Policies = l.Policies
		return newJob(w, s, on).run(ctx, seed)
	}
	want, err := run(base, a4.workers)
	if err != nil || want.violations >= satisfiable {
		return math.NaN(), err
	}
	var failed error
	n := sort.Search(mostWorkers, func(k int) bool {
		if failed != nil {
			return true
		}
		r, err := run(s, k+1)
		failed = err
		return err == nil && r.violations <= max(want.violations, tolerated) && r.accuracy >= want.accuracy-0.01
	})
	if failed != nil || n == mostWorkers {
		return math.NaN(), failed
	}
	return float64(n + 1), nil
}
