package scrooge

import (
	"math"
	"slices"
)

// Concentrate makes full machines of those that share a rate evenly, as many as every module's budget allows, and leaves the rest to
// the others: at the same cost, with fewer and smaller partial machines for placement to fit together (§3.4). It takes time that the
// objective leaves over, so that Latency may grow.
func (a *Allocation) Concentrate(p *Problem) error {
	g, err := p.graph()
	if err != nil {
		return err
	}
	for i := range a.Modules {
		x := &a.Modules[i]
		var uses []Use
		for _, u := range x.Uses {
			mode := &p.Modules[i].Modes[u.Mode]
			n := min(u.Count-1, spare(mode, u, x))
			if n < 1 {
				uses = append(uses, u)
				continue
			}
			left := float64(u.Count)*u.Rate - float64(n)*mode.Rate()
			uses = append(uses, Use{u.Mode, n, mode.Rate()})
			uses = append(uses, Use{u.Mode, u.Count - n, left / float64(u.Count-n)})
		}
		x.Uses = slices.Clip(uses)
	}
	_, err = a.measure(p, g)
	return err
}

// spare is how many of a use's machines can be full while the others keep the module's budget.
func spare(m *Mode, u Use, x *Allocated) int {
	if u.Rate >= m.Rate()*(1-few) || m.Worst(m.Rate()) > x.Within {
		return 0
	}
	least := few * m.Rate() // the lowest rate of the others
	if m.Batch > 1 && x.Within > m.Took {
		least = min(m.Rate(), float64(m.Batch)/(x.Within-m.Took).Seconds()*(1+few))
	}
	if u.Rate <= least {
		return 0
	}
	return int(math.Floor(float64(u.Count) * (u.Rate - least) / (m.Rate() - least)))
}
