package worlds

import (
	"context"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// withLengths is how many worlds of a seed are run with lengths.
	withLengths = 24
	// ignoring names the default system that knows no lengths.
	ignoring = systems.Default + ", lengths ignored"
)

// lengths shows all systems in worlds whose queries have lengths, and the default one that does not know of them.
func lengths(r *runner, f *reproduce.Sheet) error {
	long := &runner{Runner: r.Runner, systems: r.systems}
	for n := range withLengths {
		long.numbers = append(long.numbers, worlds.WithLengths+n)
	}
	long.everything(f)
	own, err := systems.Named(systems.Default)
	if err != nil {
		return err
	}
	for _, n := range long.numbers {
		long.runIgnoring(n, own)
	}
	f.Report(func(o *reproduce.Outcome) error {
		means, blind := make([]mean, len(long.systems)), mean{}
		err := long.each(func(w, k int, _ *place, most *limit) error {
			for s := range long.systems {
				means[s].add(long.runs[w][s].Of(k), most)
			}
			blind.add(long.runIgnoring(long.numbers[w], own).Of(k), most)
			return nil
		})
		row := func(name string, m mean) {
			at := f.At("worlds", m.n)
			o.AddRow(at.Named(name, "mean share of the bound", "%"), 100*m.sum/float64(m.n))
			o.AddRow(at.Named(name, "in time", "%"), 100*m.inTime/float64(m.n))
			o.AddRow(at.Named(name, "refused", "worlds"), float64(m.refused))
		}
		for s, m := range means {
			row(long.systems[s].Name, m)
		}
		row(ignoring, blind)
		return err
	})
	return nil
}

// runIgnoring adds a run of a system that takes all queries for those of the length that was measured.
func (r *runner) runIgnoring(n int, s systems.System) reproduce.Runs[*result] {
	run := func(ctx context.Context, seed uint64) (*result, error) {
		p, refused, err := r.open(seed, n)
		if err != nil || refused != "" {
			return &result{refused: refused}, err
		}
		blind := *p
		m := p.Measurements
		m.Length = nil
		if blind.believed, err = profile.NewTable(p.Spec, m, profile.P95); err != nil {
			return nil, err
		}
		return blind.run(ctx, s, r.Solver, r.Policies)
	}
	return reproduce.Add(r.Runner, key(n, ignoring), 1, r.Seeds, run)
}
