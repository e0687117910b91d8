package proteus

import "math"

// round turns fractional counts, by pair, into whole ones: it rounds down and gives the workers that are left, one by
// one, where they gain most. The result is the first allocation of a search.
func (m *problem) round(fractional func(k int) float64) *allocation {
	counts := make([]int, len(m.pairs))
	free := make([]int, len(m.groups))
	for g := range m.groups {
		free[g] = len(m.groups[g].workers)
	}
	for k := range m.pairs {
		n := min(int(math.Floor(fractional(k)+1e-6)), free[m.pairs[k].group])
		counts[k] = n
		free[m.pairs[k].group] -= n
	}
	m.giveFreeWorkers(counts, free, func(k int) float64 { return fractional(k) - math.Floor(fractional(k)+1e-6) })
	return m.rate(counts, 1)
}

// giveFreeWorkers gives free workers, one at a time, to the pair that gains most: first to stages that are not served
// in full, the more important and the worse served first, then by accuracy. Ties are decided for the pair whose rounded
// count is furthest below the relaxation's.
func (m *problem) giveFreeWorkers(counts, free []int, wanted func(k int) float64) {
	served, sums := make([]float64, len(m.stages)), make([]float64, len(m.stages))
	for s := range m.stages {
		served[s], sums[s] = m.serve(s, counts, 1, nil)
	}
	left := 0
	for _, n := range free {
		left += n
	}
	for range left {
		best, gain := -1, 0.0
		for k := range m.pairs {
			p := &m.pairs[k]
			if free[p.group] == 0 {
				continue
			}
			st := &m.stages[p.stage]
			counts[k]++
			more, sum := m.serve(int(p.stage), counts, 1, nil)
			counts[k]--
			lack := 1 - served[p.stage]/st.demand
			g := st.weight*(sum-sums[p.stage]) + 1e-9*wanted(k)
			if extra := more - served[p.stage]; lack > 1e-9 && extra > 0 {
				// The missing part counts by its square: the worst served stage first.
				g += shedCost * m.spec.Apps[st.App].Weight * (extra / st.demand) * (1 + shedCost*lack)
			}
			if g > gain+1e-12 {
				best, gain = k, g
			}
		}
		if best < 0 {
			return
		}
		p := &m.pairs[best]
		counts[best]++
		free[p.group]--
		served[p.stage], sums[p.stage] = m.serve(int(p.stage), counts, 1, nil)
	}
}
