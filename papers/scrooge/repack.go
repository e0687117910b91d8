package scrooge

import (
	"cmp"
	"math"
	"slices"
)

// repack serves all modules anew with the budgets that the allocation gave them, and keeps the result if it rents less.
// One module after the other fills whole machines with the mode that serves most for its price, and puts the remaining
// rate into the spare capacity of other machines or onto the cheapest machine that carries it. An allocation counts
// machines by the part that is used, so it has no reason to fill them: two machines at two thirds cost it the same as a
// full one and a third of another, which others can share. The order of the modules matters, so several orders are
// tried.
func (c *candidate) repack() {
	best := *c
	for _, order := range c.orders() {
		m := relocation{candidate: c, most: math.Inf(1), left: make([]int, len(c.request.prices))}
		for d := range m.left {
			m.left[d] = len(c.request.workers[d])
		}
		if slices.ContainsFunc(order, func(p piece) bool { return !m.host(p) }) {
			continue
		}
		o := *c
		o.packing = packing{bins: m.bins, used: make([]int, len(m.left))}
		o.count()
		o.consolidate()
		if o.fits() && !best.fits() || o.cost < best.cost && !near(o.cost, best.cost) {
			best = o
		}
	}
	*c = best
}

// maxPermuted is the number of modules up to which every order is tried.
const maxPermuted = 4

// orders lists orders of the modules, each with its whole rate.
func (c *candidate) orders() (out [][]piece) {
	var all []piece
	costs := make(map[[2]int]float64)
	for g, s := range c.solutions {
		for i := range s.Modules {
			p := piece{graph: g, stage: i, budget: s.Modules[i].Budget}
			for _, u := range s.Modules[i].Uses {
				m := &s.problem.Modules[i].Modes[u.Mode]
				p.rate += float64(u.Count) * u.Rate
				costs[[2]int{g, i}] += float64(u.Count) * u.Rate / m.Rate() * c.request.prices[m.Type]
			}
			all = append(all, p)
		}
	}
	if len(all) <= maxPermuted {
		permute(all, 0, func() { out = append(out, slices.Clone(all)) })
		return out
	}
	add := func(by func(p piece) float64) {
		slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(by(a), by(b)) })
		back := slices.Clone(all)
		slices.Reverse(back)
		out = append(out, slices.Clone(all), back)
	}
	cost := func(p piece) float64 { return costs[[2]int{p.graph, p.stage}] }
	add(cost)
	add(func(p piece) float64 { return math.Mod(cost(p), 1) })
	add(func(p piece) float64 { return float64(c.solutions[p.graph].Modules[p.stage].Budget) })
	add(func(p piece) float64 { return float64(p.stage) })
	return out
}

// permute calls f with every permutation of all[k:].
func permute(all []piece, k int, f func()) {
	if k == len(all) {
		f()
		return
	}
	for n := k; n < len(all); n++ {
		all[k], all[n] = all[n], all[k]
		permute(all, k+1, f)
		all[k], all[n] = all[n], all[k]
	}
}
