package kairos

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
)

// chooseByExperience takes the next pool of Algorithm 1 (§5.2): of those ranked, the highest bound that is above the
// best throughput seen, within no pool that has failed. A pool is evaluated by serving on it. The algorithm's
// throughput of a pool is the highest rate at which the objective holds. Serving shows less than that: a pool on which
// it holds carries at least what comes, and one on which it does not is worth what it serves in time. While the
// objective holds, and when no pool is left, the best of those tried serves.
func (n *appRent) chooseByExperience(ranked []Ranked, e *plan.Experience) Ranked {
	if e == nil {
		return ranked[0]
	}
	devices := len(n.explored)
	known := plan.Experience{} // of the pools that can be rented now
	var at []int               // by pool of known, its index in ranked
	for _, t := range e.Pools {
		i := slices.IndexFunc(ranked, func(r Ranked) bool {
			return slices.Equal(n.market.machines(r.Pool, devices), t.Machines)
		})
		if i >= 0 {
			known.Pools, at = append(known.Pools, t), append(at, i)
		}
	}
	best := known.Best(n.rate)
	if best < 0 {
		return ranked[0]
	}
	if !e.Explore || known.Pools[best].Holds(n.rate) {
		return ranked[at[best]]
	}
	next := slices.IndexFunc(ranked, func(r Ranked) bool {
		if r.Bound <= known.Pools[best].InTime {
			return false
		}
		for k, i := range at {
			if !known.Pools[k].Held && r.Pool.SubsetOf(ranked[i].Pool) {
				return false
			}
		}
		return true
	})
	if next < 0 {
		next = at[best]
	}
	return ranked[next]
}

// machines returns a pool by DeviceTypeID.
func (m *Market) machines(p Pool, deviceTypes int) []int {
	out := make([]int, deviceTypes)
	for t, k := range p {
		out[m.Types[t].Device] += k
	}
	return out
}
