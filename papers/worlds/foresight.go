package worlds

import (
	"context"
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// foresight adds the bound by foresight of all worlds, and the runs of the default system.
func (r *runner) foresight() {
	r.findLimits()
	own, err := systems.Named(systems.Default)
	if err != nil {
		panic(err) // the default system has a name
	}
	for _, n := range r.numbers {
		r.foreseenLimits = append(r.foreseenLimits, r.AddTask(key(n, foreseen), foreseenWork, r.Seeds,
			func(ctx context.Context, seed uint64) (any, error) {
				p, _, err := r.open(seed, n)
				if err != nil {
					return nil, err
				}
				b, err := p.bound(ctx, r.Solver, nil, bounds.Foresight())
				if err != nil {
					return nil, err
				}
				return b.Utility, nil
			}))
		r.defaults = append(r.defaults, r.runOf(n, own))
	}
}

// foreseen names the bound by foresight among the systems of the rows. foreseenWork is how much longer than a run it
// takes.
const (
	foreseen     = "foresight"
	foreseenWork = 20
)

// foreseen adds the rows of figure F.
func (r *runner) foreseen(o *reproduce.Outcome) error {
	var below, beyond foreseenMean
	err := r.each(func(w, k int, p *place, most *limit) error {
		x, known := r.defaults[w].Results[k].(*result), r.foreseenLimits[w].Results[k].(float64)
		own := limit{utility: min(known, most.utility)}
		row := func(system, quantity string) reproduce.Row {
			return reproduce.Row{
				Paper: "worlds", Figure: "F", System: system, Quantity: quantity, Unit: "%", Setting: setting(p),
			}
		}
		o.AddRow(row(bounded, "utility"), 100*most.utility)
		o.AddRow(row(foreseen, "utility"), 100*own.utility)
		o.AddRow(row(systems.Default, "utility"), 100*x.utility)
		o.AddRow(row(systems.Default, "of the bound"), 100*share(x, most))
		o.AddRow(row(systems.Default, "of that by foresight"), 100*share(x, &own))
		switch traits := p.TraitList(); {
		case strings.Contains(traits, string(worlds.Rent)):
		case strings.Contains(traits, string(worlds.Overload)):
			beyond.add(x, most, &own)
		default:
			below.add(x, most, &own)
		}
		return nil
	})
	below.row(o, "below saturation")
	beyond.row(o, "beyond saturation")
	return err
}

// foreseenMean is the mean over worlds with owned machines.
type foreseenMean struct{ worlds, fluid, foresight float64 }

func (m *foreseenMean) add(x *result, fluid, foresight *limit) {
	m.worlds++
	m.fluid += share(x, fluid)
	m.foresight += share(x, foresight)
}

func (m *foreseenMean) row(o *reproduce.Outcome, load string) {
	if m.worlds == 0 {
		return
	}
	row := func(quantity string) reproduce.Row {
		return reproduce.Row{
			Paper: "worlds", Figure: "F", System: systems.Default, Quantity: quantity, Unit: "%",
			Setting: reproduce.Setting("world", "mean, owned machines", "traits", load),
		}
	}
	o.AddRow(row("of the bound"), 100*m.fluid/m.worlds)
	o.AddRow(row("of that by foresight"), 100*m.foresight/m.worlds)
}
