package proteus

// repair moves workers, one at a time, to stages that are not served in full: what was rounded down may be missing where every
// worker is spoken for. It ends when no move serves more, and so before the search has begun there is mostly a plan that serves
// everything, and the search for one is saved.
func (m *problem) repair(a *allocation) *allocation {
	if !m.lacking(a) {
		return a
	}
	counts := append([]int(nil), a.counts...)
	total := 0.0
	for s := range m.stages {
		total += m.stages[s].weight * m.stages[s].demand
	}
	// What a stage is worth: what it lacks counts by the square, as in spend, and far more than accuracy.
	worth := func(s int) float64 {
		st := &m.stages[s]
		served, sum := m.serve(s, counts, 1, nil)
		lack := max(0, 1-served/st.demand)
		return st.weight*sum/total - shedding*m.spec.Apps[st.App].Weight*lack*(1+shedding*lack)
	}
	now := make([]float64, len(m.stages))
	more, less := make([]float64, len(m.pairs)), make([]float64, len(m.pairs)) // what one worker more or less of a pair does to its stage
	look := func(s int) {
		now[s] = worth(s)
		for _, k := range m.stages[s].pairs {
			counts[k]++
			more[k] = worth(s) - now[s]
			counts[k]--
			if counts[k] > 0 {
				counts[k]--
				less[k] = worth(s) - now[s]
				counts[k]++
			}
		}
	}
	for s := range now {
		look(s)
	}
	for range len(m.spec.Workers) {
		from, to, gain := -1, -1, slight
		for s := range m.stages {
			if served, _ := m.serve(s, counts, 1, nil); served >= m.stages[s].demand*(1-slight) {
				continue
			}
			for _, k := range m.stages[s].pairs {
				for o := range m.pairs {
					if o == k || counts[o] == 0 || m.pairs[o].group != m.pairs[k].group {
						continue
					}
					g := more[k] + less[o]
					if int(m.pairs[o].stage) == s {
						counts[o]--
						counts[k]++
						g = worth(s) - now[s]
						counts[o]++
						counts[k]--
					}
					if g > gain {
						from, to, gain = o, k, g
					}
				}
			}
		}
		if from < 0 {
			break
		}
		counts[from]--
		counts[to]++
		look(int(m.pairs[from].stage))
		look(int(m.pairs[to].stage))
	}
	if b := m.rate(counts, 1); b.before(a) {
		return b
	}
	return a
}
