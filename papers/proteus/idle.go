package proteus

import "math"

// useIdleWorkers gives variants to the workers that the plan does not need. A worker keeps its variant if that is
// accurate enough for a part of its stage's load. Else it gets the most accurate variant of the stage with the least
// spare capacity. Accuracy never falls, and a less loaded stage is late less often.
func (m *problem) useIdleWorkers(counts []int) {
	have := m.running()
	load := make([]float64, len(m.stages)) // items/s by stage at the accuracy in use
	floor := make([]float64, len(m.stages))
	for s := range m.stages {
		floor[s] = math.Inf(1)
		for _, k := range m.stages[s].pairs {
			if counts[k] > 0 {
				load[s] += float64(counts[k]) * m.pairs[k].rate
				floor[s] = min(floor[s], m.pairs[k].accuracy)
			}
		}
	}
	for g := range m.groups {
		free := len(m.groups[g].workers)
		for k := range m.pairs {
			if m.pairs[k].group == g {
				free -= counts[k]
			}
		}
		for k := range m.pairs {
			if p := &m.pairs[k]; p.group == g && p.accuracy >= floor[p.stage] {
				for ; free > 0 && have[k] > counts[k]; free-- {
					counts[k]++
					load[p.stage] += p.rate
				}
			}
		}
		for ; free > 0; free-- {
			best, worst := -1, 0.0
			for s := range m.stages {
				for _, k := range m.stages[s].pairs { // the most accurate comes first
					if p := &m.pairs[k]; p.group == g && p.accuracy >= floor[s] {
						if busy := m.stages[s].demand / max(load[s], 1e-9); busy > worst {
							best, worst = k, busy
						}
						break
					}
				}
			}
			if best < 0 {
				break
			}
			counts[best]++
			load[m.pairs[best].stage] += m.pairs[best].rate
		}
	}
}
