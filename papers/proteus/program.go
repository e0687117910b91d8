package proteus

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// program is the problem as the solver gets it. It has a column for the workers that host every pair (n) and one for
// the part of the stage's demand that they serve (r): a part rather than a rate, so that idle and busy apps have the
// same scale. Further columns are for every class of importance the unserved part of its demand, for fair goals the
// smallest accuracy, and for every running variant the workers that keep it.
//
// The equations of the paper's §4 become: one variant per device (Eq. 1) is that the n of a group's pairs sum to at
// most its workers. The routed share y with its product y*x (Eqs. 2-4) is r, which is linear since a query goes where
// its app's variants are: r <= n P / demand (Eq. 5). Serving what is asked (Eq. 6) is that the r of a stage's pairs sum
// to the served part. Effective accuracy (Eq. 7) is the sum of accuracy times demand times r.
type program struct {
	milp.Program
	workers, served []int // n and r, by pair
	classes         []importanceClass
	unserved        []int // by class: column of the unserved part
	keeps           []int // by pair: column of the workers that keep it, or none
	smallest        int   // column of the smallest accuracy, or none
	group           []int // by group: row of its workers, or none
	floors          []int // by stage: row of the smallest accuracy; nil without
}

// importanceClass is stages whose apps have the same importance. If not all can be served, stages that compete get the
// same served part, and less important classes get the workers that the more important ones leave.
type importanceClass struct {
	weight float64
	stages []int
}

// shedCost is the cost of leaving out all of a class in the relaxation, in units of accuracy. It far exceeds any gain
// of accuracy. The next more important class costs shedCost times as much, up to maxShedCost, beyond which the solver's
// arithmetic becomes inexact.
const (
	shedCost    = 20
	maxShedCost = shedCost * shedCost * shedCost
)

// build makes the program. fractions fixes the served parts, by stage; nil leaves them free below 1 at a cost. Unserved
// parts are columns of their own, so that the objective of a plan that serves everything is its accuracy and a relative
// gap has a meaning. With fixed fractions there are none, and the objective is the accuracy of what is served.
func (m *problem) build(fractions []float64) *program {
	x := &program{smallest: -1, classes: m.classes()}
	x.Maximize = true
	total := 0.0
	target := func(s int) float64 {
		if fractions == nil {
			return 1
		}
		return fractions[s]
	}
	for s := range m.stages {
		total += m.stages[s].weight * m.stages[s].demand * target(s)
	}
	if total == 0 {
		total = 1 // no app can be served at all its stages
	}
	mean, smallest := m.goal()
	price := float64(shedCost)
	for range x.classes {
		if fractions != nil {
			break
		}
		c := milp.Column{Objective: -price, Upper: 1}
		x.unserved = append(x.unserved, x.Column(c))
		price = min(price*shedCost, maxShedCost)
	}
	counts := make([][]milp.Term, len(m.groups))
	rates := make([][]milp.Term, len(m.stages))
	gains := make([][]milp.Term, len(m.stages))
	for _, p := range m.pairs {
		st := &m.stages[p.stage]
		// No worker serves more than the demand. That tightens the relaxation of lightly loaded apps and shortens the
		// search.
		most, rate := float64(len(m.groups[p.group].workers)), min(p.rate/st.demand, target(int(p.stage)))
		n := x.Column(milp.Column{Upper: most, Integer: true})
		r := x.Column(milp.Column{Objective: mean * st.weight * st.demand * p.accuracy / total, Upper: most * rate})
		x.workers, x.served = append(x.workers, n), append(x.served, r)
		x.Row(-milp.Inf, 0, milp.Term{Column: r, Coef: 1}, milp.Term{Column: n, Coef: -rate})
		counts[p.group] = append(counts[p.group], milp.Term{Column: n, Coef: 1})
		rates[p.stage] = append(rates[p.stage], milp.Term{Column: r, Coef: 1})
		gains[p.stage] = append(gains[p.stage], milp.Term{Column: r, Coef: p.accuracy})
	}
	x.group = make([]int, len(m.groups))
	for g := range m.groups {
		x.group[g] = none
		if len(counts[g]) > 0 {
			x.group[g] = x.Row(-milp.Inf, float64(len(m.groups[g].workers)), counts[g]...)
		}
	}
	for k, c := range x.classes {
		for _, s := range c.stages {
			if fractions != nil {
				x.Row(fractions[s], fractions[s], rates[s]...)
			} else {
				x.Row(1, 1, append(rates[s], milp.Term{Column: x.unserved[k], Coef: 1})...)
			}
		}
	}
	if smallest > 0 {
		x.smallest = x.Column(milp.Column{Objective: smallest, Upper: 1})
		for s := range m.stages { // accuracy of the stage >= smallest
			x.floors = append(x.floors, x.Row(0, milp.Inf,
				append(slices.Clone(gains[s]), milp.Term{Column: x.smallest, Coef: -target(s)})...))
		}
	}
	m.rewardKept(x)
	return x
}

// rewardKept makes the program prefer variants that already run.
func (m *problem) rewardKept(x *program) {
	have, each := m.keepRewards()
	if each == 0 {
		return
	}
	x.keeps = make([]int, len(m.pairs))
	for k, n := range have {
		x.keeps[k] = none
		if n > 0 {
			x.keeps[k] = x.Column(milp.Column{Objective: each, Upper: float64(n)})
			x.Row(-milp.Inf, 0, milp.Term{Column: x.keeps[k], Coef: 1}, milp.Term{Column: x.workers[k], Coef: -1})
		}
	}
}

// running returns, by pair, the workers that run it.
func (m *problem) running() []int {
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

// hosted returns the variant that a worker runs, or will run once it is loaded.
func (m *problem) hosted(w serving.WorkerID) (serving.VariantID, bool) {
	i, ok := m.byWorker[w]
	if !ok {
		return serving.None, false
	}
	return capacity.HostedVariant(i)
}

func (m *problem) find(g int, v serving.VariantID) int {
	return slices.IndexFunc(m.pairs, func(p pair) bool { return p.group == g && p.variant == v })
}

// classes groups the stages by their app's importance, the least important first.
func (m *problem) classes() []importanceClass {
	var out []importanceClass
	for s := range m.stages {
		w := m.spec.Apps[m.stages[s].App].Weight
		at := slices.IndexFunc(out, func(c importanceClass) bool { return c.weight == w })
		if at < 0 {
			at = len(out)
			out = append(out, importanceClass{weight: w})
		}
		out[at].stages = append(out[at].stages, s)
	}
	slices.SortFunc(out, func(a, b importanceClass) int {
		if a.weight < b.weight {
			return -1
		}
		return 1
	})
	return out
}

// point returns an allocation as a point of the program, for the search to start from.
func (m *problem) point(x *program, a *allocation, fractions []float64) []float64 {
	out := make([]float64, len(x.Columns))
	have, rates := m.running(), make([]float64, len(m.pairs))
	worst := 1.0
	for s := range m.stages {
		if served, sum := m.serve(s, a.counts, fractions[s], rates); served > 0 {
			worst = min(worst, sum/served)
		}
	}
	for k := range m.pairs {
		out[x.workers[k]], out[x.served[k]] = float64(a.counts[k]), rates[k]/m.stages[m.pairs[k].stage].demand
		if x.keeps != nil && x.keeps[k] >= 0 {
			out[x.keeps[k]] = float64(min(a.counts[k], have[k]))
		}
	}
	if x.smallest >= 0 {
		out[x.smallest] = worst
	}
	return out
}
