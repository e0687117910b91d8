package worlds

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// bounded is the name of the bound among the systems of the rows.
const bounded = "bound"

// rounding is the error of the solver.
const rounding = 1e-5

// utilities adds a row for every system in every world.
func utilities(r *runner, f *reproduce.Sheet) error {
	r.everything(f)
	f.Report(func(o *reproduce.Outcome) error {
		return r.each(func(w, k int, p *place, most *limit) error {
			r.rows(o, f, w, k, p, []number{
				{"utility", "%", 100 * most.utility}, {"of the bound", "%", 100}, {"in time", "%", 100 * most.inTime},
			}, func(x *result) []number {
				return []number{
					{"utility", "%", 100 * x.utility}, {"of the bound", "%", 100 * share(x, most)},
					{"in time", "%", 100 * x.inTime}, {"wasted machine time", "%", 100 * x.wasted},
				}
			})
			return nil
		})
	})
	return nil
}

// share is the part of the bound that a run has reached.
func share(x *result, most *limit) float64 {
	if most.utility <= 0 {
		return 1
	}
	return x.utility / most.utility
}

// exceeds tells whether a run is above the bound by more than chance.
func exceeds(x *result, most *limit) bool {
	return x.refused == "" && x.utility > most.utility*(1+x.tolerance)+rounding
}

// costs adds rows for the worlds with machines to rent.
func costs(r *runner, f *reproduce.Sheet) error {
	r.everything(f)
	f.Report(func(o *reproduce.Outcome) error {
		return r.each(func(w, k int, p *place, most *limit) error {
			if math.IsNaN(most.cost) {
				return nil
			}
			r.rows(o, f, w, k, p, []number{
				{"cost", "$/h", most.cost}, {"in time", "%", 100 * (1 - costLate)},
			}, func(x *result) []number {
				return []number{
					{"cost", "$/h", x.cost}, {"of the bound", "", x.cost / most.cost},
					{"in time", "%", 100 * x.inTime}, {"utility", "%", 100 * x.utility},
					{"accuracy below target", "points", 100 * x.below},
				}
			})
			return nil
		})
	})
	return nil
}

// mean is a mean that is being formed.
type mean struct {
	sum     float64
	wasted  float64 // sum over the worlds that are not refused
	inTime  float64 // the same
	n       int
	refused int
}

func (m *mean) add(x *result, most *limit) {
	m.n++
	if x.refused != "" {
		m.refused++
		return
	}
	m.sum += share(x, most)
	m.wasted += x.wasted
	m.inTime += x.inTime
}

// all is the row of all worlds.
const all = "all worlds"

// traits adds, by trait and system, the mean share of the bound in the worlds with the trait, where a refusal counts 0.
func traits(r *runner, f *reproduce.Sheet) error {
	r.everything(f)
	f.Report(func(o *reproduce.Outcome) error {
		means := make(map[worlds.Trait][]mean)
		err := r.each(func(w, k int, p *place, most *limit) error {
			for _, t := range append([]worlds.Trait{all}, p.Traits...) {
				if means[t] == nil {
					means[t] = make([]mean, len(r.systems))
				}
				for s := range r.systems {
					means[t][s].add(r.runs[w][s].Of(k), most)
				}
			}
			return nil
		})
		order := []worlds.Trait{all}
		for _, m := range worlds.Vocabulary() {
			order = append(order, m.Trait)
		}
		for _, t := range order {
			for s, m := range means[t] {
				at, name := f.At("trait", t, "worlds", m.n), r.systems[s].Name
				o.AddRow(at.Named(name, "mean share of the bound", "%"), 100*m.sum/float64(m.n))
				o.AddRow(at.Named(name, "refused", "worlds"), float64(m.refused))
				if served := m.n - m.refused; served > 0 {
					o.AddRow(at.Named(name, "mean wasted machine time", "%"), 100*m.wasted/float64(served))
				}
			}
		}
		return err
	})
	return nil
}

// above adds a note for the runs that did better than is possible: faults of the simulator. Where batches scatter the
// bound of the very run decides, with its batches as fast as they turned out.
func (r *runner) above(o *reproduce.Outcome) error {
	total := 0
	text := ""
	err := r.each(func(w, k int, p *place, most *limit) error {
		for s := range r.systems {
			x := r.runs[w][s].Of(k)
			over, what, err := p.above(context.Background(), r.Solver, x, most)
			if err != nil {
				return err
			}
			if !over {
				continue
			}
			if total++; total <= mostNamed {
				text += fmt.Sprintf(", %s in %s (%s)", r.systems[s].Name, p.Name, what)
			}
		}
		return nil
	})
	if total > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("%d runs are above their bound, which is a fault of the simulator%s.",
			total, text))
	}
	return err
}

// above tells whether a run is above its bound, and by which numbers.
func (p *place) above(ctx context.Context, solver milp.Solver, x *result, most *limit) (bool, string, error) {
	if !exceeds(x, most) {
		return false, "", nil
	}
	own := *most
	if x.speed != nil {
		b, err := p.bound(ctx, solver, x.speed, bounds.Fluid())
		if err != nil {
			return false, "", err
		}
		own.utility = b.Utility
	}
	return exceeds(x, &own), fmt.Sprintf("%.4f of at most %.4f", x.utility, own.utility), nil
}

// mostNamed is how many runs above their bound are named.
const mostNamed = 12
