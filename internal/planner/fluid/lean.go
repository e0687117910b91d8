package fluid

import "slices"

// lean returns the problem with those variants only with which the program serves the demand, at its targets, in the
// least time of some machines. A rule that would rather run accurate variants than leave machines idle then needs fewer
// machines. Variants below a floor are left out, too.
func (m *problem) lean(n counts) *problem {
	p := m.newProgram(m.whole(n))
	for k, z := range p.spent {
		o := &m.kinds[p.sites[z.site].kind].options[z.option]
		p.Cost(p.column[k], -m.apps[m.stages[o.stage].app].weight*leanTime)
	}
	rates := m.demand()
	p.solve(rates)
	used := make([]bool, len(m.spec.Variants))
	f := p.flows()
	for i := range f.time {
		for j, t := range f.time[i] {
			if t > 0 {
				used[m.kinds[i].options[j].variant] = true
			}
		}
	}
	has := make([]bool, len(m.stages))
	for v := range used {
		has[m.spec.Variants[v].Stage] = has[m.spec.Variants[v].Stage] || used[v]
	}
	out := *m
	out.kinds = slices.Clone(m.kinds)
	for k := range out.kinds {
		out.kinds[k].options = slices.DeleteFunc(slices.Clone(m.kinds[k].options), func(o option) bool {
			return has[o.stage] && !used[o.variant]
		})
	}
	return &out
}

// held is how many options machines of all kinds have.
func (m *problem) held() (n int) {
	for k := range m.kinds {
		n += len(m.kinds[k].options)
	}
	return n
}

// leanTime is what a machine's second costs relative to a query: little, so that time only decides among what serves
// the same.
const leanTime = 1e-4
