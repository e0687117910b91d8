package loki

import (
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// mode is which of the two programs is solved.
type mode uint8

const (
	// hardwareScaling minimises the servers that carry the demand with the most accurate variants.
	hardwareScaling mode = iota
	// accuracyScaling maximises the mean accuracy on all servers.
	accuracyScaling
)

const (
	gap       = 0.002 // relative
	nodes     = 5_000 // of the search tree
	shedPrice = 100   // of leaving out all queries, where the accuracy of serving them is at most 1
)

// solution is what a program says to run.
type solution struct {
	counts []int     // servers by offer
	shed   []float64 // by pipeline: share of the queries that is left out
}

// solve returns the best solution; nil where there is none: in hardwareScaling, where the servers do not suffice.
func (x *request) solve(ctx context.Context, m mode) (*solution, error) {
	p := &milp.Program{Maximize: m == accuracyScaling}
	servers := make([]int, len(x.offers))
	inGroup := make([][]milp.Term, len(x.groups))
	for k := range x.offers {
		o := &x.offers[k]
		servers[k] = -1
		if m == hardwareScaling && !x.mostAccurate(k) {
			continue
		}
		c := milp.Column{Upper: float64(len(x.groups[o.Group])), Integer: true}
		if m == hardwareScaling {
			c.Objective = x.price[o.Group]
			c.Upper = min(c.Upper, math.Ceil(x.items[o.Stage]/o.Rate-1e-9))
		}
		servers[k] = p.Column(c)
		inGroup[o.Group] = append(inGroup[o.Group], milp.Term{Column: servers[k], Coef: 1})
	}
	for g, terms := range inGroup {
		if len(terms) > 0 {
			p.Row(-milp.Inf, float64(len(x.groups[g])), terms...)
		}
	}
	total := 0.0
	for n := range x.pipelines {
		total += x.importance(n)
	}
	shed, loads := make([]int, len(x.pipelines)), make([][]milp.Term, len(x.offers))
	for n := range x.pipelines {
		shed[n] = x.addPipeline(p, n, m, x.importance(n)/total, servers, loads)
	}
	for k := range loads {
		if len(loads[k]) > 0 { // its servers carry what comes
			p.Row(-milp.Inf, 0, append(loads[k], milp.Term{Column: servers[k], Coef: -x.offers[k].Rate})...)
		}
	}
	got, err := x.p.Solver.Solve(ctx, p, milp.Limits{Gap: gap, Nodes: nodes})
	if err != nil || got.Values == nil {
		return nil, err
	}
	out := &solution{counts: make([]int, len(x.offers)), shed: make([]float64, len(x.pipelines))}
	for k, c := range servers {
		if c >= 0 {
			out.counts[k] = int(math.Round(got.Values[c]))
		}
	}
	for n, c := range shed {
		if c >= 0 {
			out.shed[n] = got.Values[c]
		}
	}
	return out, nil
}

// importance is what all queries of a pipeline count.
func (x *request) importance(n int) float64 {
	a := x.pipelines[n].app
	return x.rates[a] * max(x.spec.Apps[a].Weight, 1e-9)
}

// addPipeline adds the flows of a pipeline, each a share of its queries, and to loads what they bring to every offer.
// part is its part of all importance. It returns the column of what is left out of the demand, or -1.
func (x *request) addPipeline(p *milp.Program, n int, m mode, part float64, servers []int, loads [][]milp.Term) int {
	pl := &x.pipelines[n]
	shed := -1
	if m == accuracyScaling {
		shed = p.Column(milp.Column{Objective: -shedPrice * part, Upper: 1})
	}
	counted := make(map[serving.StageID]map[int][]milp.Term) // by stage and offer: the flows of the branch that counts
	for at := range pl.branches {
		b := &pl.branches[at]
		var all []milp.Term
		here := make(map[serving.StageID]map[int][]milp.Term)
		for _, q := range b.paths {
			if slices.ContainsFunc(q.offers, func(k int) bool { return servers[k] < 0 }) {
				continue
			}
			c := milp.Column{Upper: 1}
			if m == accuracyScaling {
				c.Objective = part * q.accuracy / float64(len(pl.branches))
			}
			flow := milp.Term{Column: p.Column(c), Coef: 1}
			all = append(all, flow)
			for k, s := range b.stages {
				if here[s] == nil {
					here[s] = make(map[int][]milp.Term)
				}
				here[s][q.offers[k]] = append(here[s][q.offers[k]], flow)
			}
		}
		if shed >= 0 {
			all = append(all, milp.Term{Column: shed, Coef: 1})
		}
		p.Row(1, 1, all...)
		for _, s := range b.stages {
			if counted[s] != nil {
				x.agree(p, s, counted[s], here[s])
				continue
			}
			counted[s] = here[s]
			for k := range x.offers {
				for _, t := range here[s][k] {
					loads[k] = append(loads[k], milp.Term{Column: t.Column, Coef: x.items[s]})
				}
			}
		}
	}
	return shed
}

// agree has two branches send the same shares through the offers of a stage that both have.
func (x *request) agree(p *milp.Program, s serving.StageID, a, b map[int][]milp.Term) {
	for k := range x.offers {
		if x.offers[k].Stage != s || len(a[k])+len(b[k]) == 0 {
			continue
		}
		terms := slices.Clone(a[k])
		for _, t := range b[k] {
			terms = append(terms, milp.Term{Column: t.Column, Coef: -1})
		}
		p.Row(0, 0, terms...)
	}
}
