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
func (r *runner) utilities(o *reproduce.Outcome) error {
	return r.each(func(w, k int, p *place, most *limit) error {
		row := func(system, quantity, unit string) reproduce.Row {
			return reproduce.Row{
				Paper: "worlds", Figure: "U", System: system, Quantity: quantity, Unit: unit, Setting: setting(p),
			}
		}
		o.AddRow(row(bounded, "utility", "%"), 100*most.utility)
		o.AddRow(row(bounded, "of the bound", "%"), 100)
		o.AddRow(row(bounded, "in time", "%"), 100*most.inTime)
		for s := range r.systems {
			x, name := r.result(w, k, s), r.systems[s].Name
			if x.refused != "" {
				o.AddRow(refusal(row(name, "utility", "%"), x), 0)
				continue
			}
			o.AddRow(row(name, "utility", "%"), 100*x.utility)
			o.AddRow(row(name, "of the bound", "%"), 100*share(x, most))
			o.AddRow(row(name, "in time", "%"), 100*x.inTime)
		}
		return nil
	})
}

// refusal is the row of a system that refuses a world.
func refusal(r reproduce.Row, x *result) reproduce.Row {
	r.Note = "refuses: " + x.refused
	return r
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
func (r *runner) costs(o *reproduce.Outcome) error {
	return r.each(func(w, k int, p *place, most *limit) error {
		if math.IsNaN(most.cost) {
			return nil
		}
		row := func(system, quantity, unit string) reproduce.Row {
			return reproduce.Row{
				Paper: "worlds", Figure: "M", System: system, Quantity: quantity, Unit: unit, Setting: setting(p),
			}
		}
		o.AddRow(row(bounded, "cost", "$/h"), most.cost)
		o.AddRow(row(bounded, "in time", "%"), 100*(1-costLate))
		for s := range r.systems {
			x, name := r.result(w, k, s), r.systems[s].Name
			if x.refused != "" {
				o.AddRow(refusal(row(name, "cost", "$/h"), x), 0)
				continue
			}
			o.AddRow(row(name, "cost", "$/h"), x.cost)
			o.AddRow(row(name, "of the bound", ""), x.cost/most.cost)
			o.AddRow(row(name, "in time", "%"), 100*x.inTime)
			o.AddRow(row(name, "utility", "%"), 100*x.utility)
			o.AddRow(row(name, "accuracy below target", "points"), 100*x.below)
		}
		return nil
	})
}

// mean is a mean that is being formed.
type mean struct {
	sum     float64
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
}

// all is the row of all worlds.
const all = "all worlds"

// traits adds, by trait and system, the mean share of the bound in the worlds with the trait, where a refusal counts 0.
func (r *runner) traits(o *reproduce.Outcome) error {
	means := make(map[worlds.Trait][]mean)
	note := func(t worlds.Trait, s int, x *result, most *limit) {
		if means[t] == nil {
			means[t] = make([]mean, len(r.systems))
		}
		means[t][s].add(x, most)
	}
	if err := r.each(func(w, k int, p *place, most *limit) error {
		for s := range r.systems {
			x := r.result(w, k, s)
			for _, t := range p.Traits {
				note(t, s, x, most)
			}
			note(all, s, x, most)
		}
		return nil
	}); err != nil {
		return err
	}
	rows := append([]worlds.Trait{all}, r.traitNames(func(t worlds.Trait) bool { return means[t] != nil })...)
	for _, t := range rows {
		list := means[t]
		for s := range r.systems {
			m := &list[s]
			row := reproduce.Row{
				Paper: "worlds", Figure: "T", System: r.systems[s].Name, Quantity: "mean share of the bound", Unit: "%",
				Setting: reproduce.Setting("trait", t, "worlds", m.n),
			}
			o.AddRow(row, 100*m.sum/float64(m.n))
			row.Quantity, row.Unit = "refused", "worlds"
			o.AddRow(row, float64(m.refused))
		}
	}
	return nil
}

// above adds a note for the runs that did better than is possible: faults of the simulator. Where batches scatter the
// bound of the very run decides, with its batches as fast as they turned out.
func (r *runner) above(o *reproduce.Outcome) error {
	total := 0
	text := ""
	err := r.each(func(w, k int, p *place, most *limit) error {
		for s := range r.systems {
			x := r.result(w, k, s)
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
