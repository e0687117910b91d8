package worlds

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// runner holds what figures share: the worlds, and the runs of systems in them.
type runner struct {
	*reproduce.Runner
	numbers []int // of the worlds
	systems []systems.System
	limits  []reproduce.Runs[*limit]    // by position in numbers; nil until a figure asks for them
	runs    [][]reproduce.Runs[*result] // by position in numbers, then in systems; nil as well
	places  reproduce.Memo[[2]uint64, opened]
}

// opened is a world that is read once for all its runs, and why it is refused.
type opened struct {
	place   *place
	refused string
}

func newRunner(r reproduce.Request, numbers []int, list []systems.System) *runner {
	return &runner{Runner: reproduce.NewRunner(r), numbers: numbers, systems: list}
}

// open returns a world of the runner.
func (r *runner) open(seed uint64, number int) (*place, string, error) {
	o, err := r.places.Get([2]uint64{seed, uint64(number)}, func() (o opened, err error) {
		o.place, o.refused, err = open(seed, number)
		return o, err
	})
	return o.place, o.refused, err
}

// everything adds the runs of all systems in all worlds, once. Runs above the bound are noted.
func (r *runner) everything(f *reproduce.Sheet) {
	if r.runs != nil {
		return
	}
	r.findLimits()
	for _, n := range r.numbers {
		var list []reproduce.Runs[*result]
		for _, s := range r.systems {
			list = append(list, r.runOf(n, s))
		}
		r.runs = append(r.runs, list)
	}
	f.Report(r.above)
}

// findLimits adds the bounds of all worlds, once.
func (r *runner) findLimits() {
	if r.limits != nil {
		return
	}
	for _, n := range r.numbers {
		r.limits = append(r.limits, reproduce.Add(r.Runner, key(n, ""), 1, r.Seeds,
			func(ctx context.Context, seed uint64) (*limit, error) {
				p, _, err := r.open(seed, n)
				if err != nil {
					return nil, err
				}
				return p.limit(ctx, r.Solver)
			}))
	}
}

// foreseenLimit adds the bound by foresight of a world.
func (r *runner) foreseenLimit(n int) reproduce.Runs[float64] {
	return reproduce.Add(r.Runner, key(n, foreseen), foreseenWork, r.Seeds,
		func(ctx context.Context, seed uint64) (float64, error) {
			p, _, err := r.open(seed, n)
			if err != nil {
				return 0, err
			}
			b, err := p.bound(ctx, r.Solver, nil, bounds.Foresight())
			if err != nil {
				return 0, err
			}
			return b.Utility, nil
		})
}

// runOf adds the runs of a system in a world.
func (r *runner) runOf(n int, s systems.System) reproduce.Runs[*result] {
	return reproduce.Add(r.Runner, key(n, s.Name), 1, r.Seeds, func(ctx context.Context, seed uint64) (*result, error) {
		p, refused, err := r.open(seed, n)
		if err != nil || refused != "" {
			return &result{refused: refused}, err
		}
		return p.run(ctx, s, r.Solver, r.Policies)
	})
}

// key names the task of a system in a world; "" stands for the bound.
func key(number int, system string) string { return fmt.Sprintf("world %02d %s", number, system) }

// each calls do for every world in turn. w is its position in numbers, k the position of its seed.
func (r *runner) each(do func(w, k int, p *place, most *limit) error) error {
	for k := range r.Seeds {
		for w, n := range r.numbers {
			p, _, err := r.open(r.First+uint64(k), n)
			if err != nil {
				return err
			}
			if err := do(w, k, p, r.limits[w].Of(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows adds rows of a world: those of the bound first, then those of every system, or that it refuses the world.
func (r *runner) rows(o *reproduce.Outcome, f *reproduce.Sheet, w, k int, p *place, ofBound []number,
	of func(*result) []number) {
	at := f.At("world", p.Name, "traits", p.TraitList())
	for _, x := range ofBound {
		o.AddRow(at.Named(bounded, x.quantity, x.unit), x.value)
	}
	for s := range r.systems {
		x, name := r.runs[w][s].Of(k), r.systems[s].Name
		for n, v := range of(x) {
			switch row := at.Named(name, v.quantity, v.unit); {
			case x.refused == "":
				o.AddRow(row, v.value)
			case n == 0:
				row.Note = "refuses: " + x.refused
				o.AddRow(row, 0)
			}
		}
	}
}

// number is a number of a row.
type number struct {
	quantity, unit string
	value          float64
}
