package fluid

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// capped tells whether there may be fewer instances of a stage than there are machines.
func (m *problem) capped(s serving.StageID) bool { return m.apps[m.stages[s].app].capped() }

func (a *app) capped() bool { return a.most != math.MaxInt && !a.closed }

func (m *problem) anyCapped() bool {
	return slices.ContainsFunc(m.apps, func(a app) bool { return a.capped() })
}

// divided divides sites so that stages may have any number of instances up to their most: into those beyond the
// largest of these numbers, and halves of what is left, and halves of these. Machines that are chosen stay in order.
func (m *problem) divided(sites []site) []site {
	most := 0
	for a := range m.apps {
		if m.apps[a].capped() {
			most = max(most, m.apps[a].most)
		}
	}
	if most == 0 {
		return sites
	}
	var out []site
	for i := range sites {
		rest, from := int(sites[i].count), 0
		for rest > 0 {
			n := rest - most
			if n <= 0 {
				n = (rest + 1) / 2
			}
			part := sites[i]
			part.count, part.holds = float64(n), slices.Clone(sites[i].holds)
			if part.workers != nil {
				part.workers = sites[i].workers[from : from+n : from+n]
			}
			out = append(out, part)
			rest, from = rest-n, from+n
		}
	}
	return out
}

// beyondMost tells whether sites hold more of a stage than there may be.
func (m *problem) beyondMost(sites []site) bool {
	x := residency{m: m, sites: sites}
	for s := range m.stages {
		if m.capped(serving.StageID(s)) && x.instances(serving.StageID(s)) > float64(m.apps[m.stages[s].app].most) {
			return true
		}
	}
	return false
}

// raised returns the numbers of machines that the least numbers of instances ask for, where there are fewer: the
// cheapest that can hold them, as far as there are any. It is nil where nothing is missing.
func (m *problem) raised(n counts) (out counts) {
	for s := range m.stages {
		a := &m.apps[m.stages[s].app]
		if a.closed || a.least == 0 {
			continue
		}
		missing := a.least
		for k := range n {
			if m.canHold(k, serving.StageID(s)) {
				missing -= n[k]
			}
		}
		for missing > 0 {
			k := m.cheapestFor(serving.StageID(s), n)
			if k < 0 {
				break
			}
			if out == nil {
				out = slices.Clone(n)
				n = out
			}
			out[k]++
			missing--
		}
	}
	return out
}

// leastCost is what the machines for the least number of instances of any one stage cost at least, in $/h.
func (m *problem) leastCost() (most float64) {
	for s := range m.stages {
		a := &m.apps[m.stages[s].app]
		n := make(counts, len(m.kinds))
		for range a.least {
			if k := m.cheapestFor(serving.StageID(s), n); k >= 0 && !a.closed {
				n[k]++
			}
		}
		most = max(most, m.cost(n))
	}
	return most
}

// cheapestFor is the kind of the lowest price of which there is one more machine that can hold a stage; -1 for none.
func (m *problem) cheapestFor(s serving.StageID, n counts) int {
	best := -1
	for k := range m.kinds {
		if n[k] < m.kinds[k].most && m.canHold(k, s) && (best < 0 || m.kinds[k].price < m.kinds[best].price) {
			best = k
		}
	}
	return best
}

// canHold tells whether a machine of a kind can serve a stage.
func (m *problem) canHold(k int, s serving.StageID) bool {
	return slices.ContainsFunc(m.kinds[k].options, func(o option) bool { return o.stage == s && o.rates != nil })
}

// floors rounds fractions of machines down.
func floors(n []float64) (out counts) {
	for k := range n {
		out = append(out, int(math.Floor(n[k]+servedTolerance)))
	}
	return out
}
