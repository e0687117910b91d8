package kairos

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// learnLoad is the load of Figure L as a part of what the pool carries that Kairos chooses.
const learnLoad = 0.9

// figureL is Kairos with latencies that are learned while it serves, from nothing (§5.1), beside the measured means
// that the other figures begin with.
func figureL(run *runner, f *reproduce.Sheet) error {
	c := f.Chart("L", "Kairos: latencies learned from nothing", 1)
	p := c.Panel("late queries (%)", "time (s)", 0, reproduce.Auto)
	for _, m := range models {
		at := f.At("model", m.name, "load", learnLoad)
		for _, fresh := range []bool{false, true} {
			name := "the means known"
			if fresh {
				name = "from nothing"
			}
			x := run.exploring(kairosRule, paperSetup(m.name), learnLoad, fresh)
			addLate(at, name, x)
			at.Row(name, "until the last pool serves", "s", x.Each(func(r *exploreRun) float64 { return r.settled }))
			at.Row(name, "pools", "", x.Each(func(r *exploreRun) float64 { return float64(r.pools) }))
			f.Report(func(o *reproduce.Outcome) error {
				r := x.First()
				o.Notes = append(o.Notes, fmt.Sprintf("%s, %s, first seed: pool %v, at last %v.", m.name, name, r.first,
					r.last))
				return nil
			})
			if fresh {
				p.Curve(m.name, func() (at, late []float64) { return x.First().curve() })
			}
		}
	}
	f.Note("A quarter of an hour with Poisson arrivals, at 0.9 of what the pool carries that kairos chooses. A pool " +
		"is there 30 s after it was asked for.")
	return nil
}
