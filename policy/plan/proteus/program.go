package proteus

import (
	"slices"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/policy/plan/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// program is the problem as the solver wants it. Columns: for every pair the workers that host it (n) and the items/s they
// serve (r); for every class of importance the served fraction of its demand; for fair goals the smallest accuracy; for
// every running variant the workers that keep it.
//
// Equations of the paper's §4 and what became of them: one variant per device (Eq. 1) is the sum of n over a group's pairs
// being at most its workers; the routed share y with its product y*x (Eqs. 2-4) is the rate r, linear since a query goes
// where its app's variants are: r <= n P (Eq. 5); serving what is asked (Eq. 6) is the sum of r over a stage's pairs being
// its demand times the served fraction; effective accuracy (Eq. 7) is the sum of value times r.
type program struct {
	milp.Program
	n, r    []int // by pair
	classes []class
	served  []int // by class: column of the unserved fraction, or of the multiple served
	kept    []int // by pair: column of the workers that keep it, or -1
	floor   int   // column of the smallest accuracy, or -1
}

// class is stages whose apps are of one importance: when not all can be served, they are served to the same fraction, the
// heavier classes first.
type class struct {
	weight float64
	stages []int
}

// shedding is what a class's unserved fraction costs, in units of accuracy: far more than accuracy can gain by it.
const shedding = 20

// build makes the program. fractions fixes the served fractions, by class; nil leaves them free below 1 at a cost. The
// column of a class is what it leaves unserved, so that the objective of a plan that serves everything is its accuracy and a
// relative gap means something.
func (m *problem) build(fractions []float64) *program {
	x := &program{floor: -1, classes: m.classes()}
	x.Maximize = true
	total := 0.0
	for s := range m.stages {
		total += m.stages[s].weight * m.stages[s].demand
	}
	mean, smallest := 1.0, 0.0
	switch m.o.Goal {
	case Fairness:
		mean, smallest = 0.001, 1 // the mean only decides among equals
	case Blend:
		mean, smallest = 1-m.o.Lambda, m.o.Lambda
	}
	price := float64(shedding)
	for k := range x.classes {
		c := milp.Column{Objective: -price, Upper: 1}
		if fractions != nil {
			c = milp.Column{Lower: 1 - fractions[k], Upper: 1 - fractions[k]}
		}
		x.served = append(x.served, x.Column(c))
		price *= shedding
	}
	counts := make([][]milp.Term, len(m.groups))
	rates := make([][]milp.Term, len(m.stages))
	gains := make([][]milp.Term, len(m.stages))
	for _, p := range m.pairs {
		st := &m.stages[p.stage]
		// No worker serves more than what is asked: a tighter relaxation, and a smaller search, for lightly loaded apps.
		most, rate := float64(len(m.groups[p.group].workers)), min(p.rate, st.demand)
		n := x.Column(milp.Column{Upper: most, Integer: true})
		r := x.Column(milp.Column{Objective: mean * st.weight * p.value / total, Upper: most * rate})
		x.n, x.r = append(x.n, n), append(x.r, r)
		x.Row(-milp.Inf, 0, milp.Term{Column: r, Coef: 1}, milp.Term{Column: n, Coef: -rate})
		counts[p.group] = append(counts[p.group], milp.Term{Column: n, Coef: 1})
		rates[p.stage] = append(rates[p.stage], milp.Term{Column: r, Coef: 1})
		gains[p.stage] = append(gains[p.stage], milp.Term{Column: r, Coef: p.value})
	}
	for g := range m.groups {
		if len(counts[g]) > 0 {
			x.Row(-milp.Inf, float64(len(m.groups[g].workers)), counts[g]...)
		}
	}
	for k, c := range x.classes {
		for _, s := range c.stages {
			d := m.stages[s].demand
			x.Row(d, d, append(rates[s], milp.Term{Column: x.served[k], Coef: d})...)
		}
	}
	if smallest > 0 {
		x.floor = x.Column(milp.Column{Objective: smallest, Upper: 1})
		for k, c := range x.classes {
			for _, s := range c.stages {
				// accuracy of the stage >= floor; with a fraction unserved its demand shrinks with it
				d := m.stages[s].demand
				if fractions != nil {
					d *= fractions[k]
				}
				x.Row(0, milp.Inf, append(slices.Clone(gains[s]), milp.Term{Column: x.floor, Coef: -d})...)
			}
		}
	}
	m.reward(x)
	return x
}

// carry makes the program of what can be served at all: whatever the accuracy, so that of a stage's pairs in a group only the
// fastest matters and rates need no columns. fastest says which pair its n belong to.
func (m *problem) carry() (x *program, fastest []int) {
	x = &program{floor: -1, classes: m.classes()}
	x.Maximize = true
	price := float64(shedding)
	for range x.classes {
		x.served = append(x.served, x.Column(milp.Column{Objective: -price, Upper: 1}))
		price *= shedding
	}
	counts := make([][]milp.Term, len(m.groups))
	carried := make([][]milp.Term, len(m.stages))
	for s := range m.stages {
		for g := range m.groups {
			best := -1
			for _, k := range m.stages[s].pairs {
				if p := &m.pairs[k]; p.group == g && (best < 0 || p.rate > m.pairs[best].rate) {
					best = k
				}
			}
			if best < 0 {
				continue
			}
			n := x.Column(milp.Column{Upper: float64(len(m.groups[g].workers)), Integer: true})
			x.n, fastest = append(x.n, n), append(fastest, best)
			counts[g] = append(counts[g], milp.Term{Column: n, Coef: 1})
			carried[s] = append(carried[s], milp.Term{Column: n, Coef: min(m.pairs[best].rate, m.stages[s].demand)})
		}
	}
	for g := range m.groups {
		if len(counts[g]) > 0 {
			x.Row(-milp.Inf, float64(len(m.groups[g].workers)), counts[g]...)
		}
	}
	for k, c := range x.classes {
		for _, s := range c.stages {
			d := m.stages[s].demand
			x.Row(d, milp.Inf, append(carried[s], milp.Term{Column: x.served[k], Coef: d})...)
		}
	}
	return x, fastest
}

// reward makes the plan prefer what already runs: all of it together is worth the tolerance.
func (m *problem) reward(x *program) {
	if m.o.Tolerance <= 0 {
		return
	}
	x.kept = make([]int, len(m.pairs))
	for k := range x.kept {
		x.kept[k] = -1
	}
	have := m.have()
	total := 0
	for _, n := range have {
		total += n
	}
	for k, n := range have {
		if n > 0 {
			x.kept[k] = x.Column(milp.Column{Objective: m.o.Tolerance / float64(total), Upper: float64(n)})
			x.Row(-milp.Inf, 0, milp.Term{Column: x.kept[k], Coef: 1}, milp.Term{Column: x.n[k], Coef: -1})
		}
	}
}

// have counts, by pair, the workers on which it runs.
func (m *problem) have() []int {
	out := make([]int, len(m.pairs))
	for g := range m.groups {
		for _, w := range m.groups[g].workers {
			if v, ok := m.hosted(w); ok {
				if k := m.find(g, v); k >= 0 {
					out[k]++
				}
			}
		}
	}
	return out
}

// hosted is the variant that a worker runs, or is to run once it is loaded.
func (m *problem) hosted(w serving.WorkerID) (serving.VariantID, bool) {
	i, ok := m.running[w]
	if !ok {
		return serving.None, false
	}
	return capacity.Hosted(i)
}

func (m *problem) find(g int, v serving.VariantID) int {
	return slices.IndexFunc(m.pairs, func(p pair) bool { return p.group == g && p.variant == v })
}

// classes groups the stages by their app's importance, the least important first.
func (m *problem) classes() []class {
	var out []class
	for s := range m.stages {
		w := m.spec.Apps[m.stages[s].App].Weight
		at := slices.IndexFunc(out, func(c class) bool { return c.weight == w })
		if at < 0 {
			at = len(out)
			out = append(out, class{weight: w})
		}
		out[at].stages = append(out[at].stages, s)
	}
	slices.SortFunc(out, func(a, b class) int {
		if a.weight < b.weight {
			return -1
		}
		return 1
	})
	return out
}

// point is an allocation as a point of the program, for the search to start from.
func (m *problem) point(x *program, a *allocation) []float64 {
	out := make([]float64, len(x.Columns))
	for k, c := range x.classes {
		least := 1.0
		for _, s := range c.stages {
			least = min(least, a.served[s])
		}
		for _, s := range c.stages {
			// All stages of a class are served to the same fraction in the program.
			for _, p := range m.stages[s].pairs {
				if a.served[s] > 0 {
					out[x.r[p]] = a.rates[p] * least / a.served[s]
				}
			}
		}
		out[x.served[k]] = 1 - least
	}
	have := m.have()
	for k := range m.pairs {
		out[x.n[k]] = float64(a.counts[k])
		if x.kept != nil && x.kept[k] >= 0 {
			out[x.kept[k]] = float64(min(a.counts[k], have[k]))
		}
	}
	if x.floor >= 0 {
		out[x.floor] = a.worst
	}
	return out
}
