package worlds

import (
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// foreseen names the bound by foresight among the systems of the rows. foreseenWork is how much longer than a run it
// takes.
const (
	foreseen     = "foresight"
	foreseenWork = 20
)

// foresight shows the default system beside the bound by foresight.
func foresight(r *runner, f *reproduce.Sheet) error {
	r.findLimits()
	own, err := systems.Named(systems.Default)
	if err != nil {
		return err
	}
	for _, n := range r.numbers {
		r.foreseenLimit(n)
		r.runOf(n, own)
	}
	f.Report(func(o *reproduce.Outcome) error {
		var below, beyond foreseenMean
		err := r.each(func(w, k int, p *place, most *limit) error {
			x, known := r.runOf(r.numbers[w], own).Of(k), r.foreseenLimit(r.numbers[w]).Of(k)
			foresight := limit{utility: min(known, most.utility)}
			at := f.At("world", p.Name, "traits", p.TraitList())
			for _, v := range []struct {
				system, quantity string
				value            float64
			}{
				{bounded, "utility", most.utility}, {foreseen, "utility", foresight.utility},
				{systems.Default, "utility", x.utility}, {systems.Default, "of the bound", share(x, most)},
				{systems.Default, "of that by foresight", share(x, &foresight)},
			} {
				o.AddRow(at.Named(v.system, v.quantity, "%"), 100*v.value)
			}
			switch traits := p.TraitList(); {
			case strings.Contains(traits, string(worlds.Rent)):
			case strings.Contains(traits, string(worlds.Overload)):
				beyond.add(x, most, &foresight)
			default:
				below.add(x, most, &foresight)
			}
			return nil
		})
		below.row(o, f, "below saturation")
		beyond.row(o, f, "beyond saturation")
		return err
	})
	return nil
}

// foreseenMean is the mean over worlds with owned machines.
type foreseenMean struct{ worlds, fluid, foresight float64 }

func (m *foreseenMean) add(x *result, fluid, foresight *limit) {
	m.worlds++
	m.fluid += share(x, fluid)
	m.foresight += share(x, foresight)
}

func (m *foreseenMean) row(o *reproduce.Outcome, f *reproduce.Sheet, load string) {
	if m.worlds > 0 {
		at := f.At("world", "mean, owned machines", "traits", load)
		o.AddRow(at.Named(systems.Default, "of the bound", "%"), 100*m.fluid/m.worlds)
		o.AddRow(at.Named(systems.Default, "of that by foresight", "%"), 100*m.foresight/m.worlds)
	}
}
