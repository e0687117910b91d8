package ipa

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// choice is a solution: the offer of every stage, by StageID; -1 for a stage that is left out.
type choice struct {
	offers []int
	left   int // number of stages that are left out
}

const (
	gap          = 0.001  // relative
	nodes        = 20_000 // of the search tree
	leftOutPrice = 1e4    // of a stage without workers; far above what any accuracy brings
)

// solve returns the best choice that carries a part of the demand and leaves out at most so many stages; nil where
// there is none. Latency along every way through a graph is that of the batches, and the wait for them to fill.
func (x *request) solve(ctx context.Context, part float64, mostLeft int) (*choice, error) {
	o := &x.p.Options
	alpha, beta, delta := cmp.Or(o.Accuracy, defaultAccuracy), cmp.Or(o.Cost, defaultCost),
		cmp.Or(o.Batch, defaultBatch)
	p := &milp.Program{Maximize: true}
	kept := x.undominated(part)
	column := make([]int, len(kept))
	one := make([][]milp.Term, len(x.spec.Stages))
	takes := make([][]milp.Term, len(x.spec.Stages))
	workers := make([][]milp.Term, len(x.groups))
	for n, k := range kept {
		f := &x.offers[k]
		replicas := float64(x.replicas(f, part))
		column[n] = p.Column(milp.Column{
			Objective: alpha*x.rank[f.Variant] - beta*replicas*x.price[f.Group] - delta*float64(f.Batch),
			Upper:     1, Integer: true,
		})
		one[f.Stage] = append(one[f.Stage], milp.Term{Column: column[n], Coef: 1})
		takes[f.Stage] = append(takes[f.Stage], milp.Term{
			Column: column[n], Coef: f.Run.Seconds() + x.queueing(f),
		})
		workers[f.Group] = append(workers[f.Group], milp.Term{Column: column[n], Coef: replicas})
	}
	for g, terms := range workers {
		if len(terms) > 0 {
			p.Row(-milp.Inf, float64(len(x.groups[g])), terms...)
		}
	}
	var out []milp.Term
	for s := range one {
		if x.spec.Apps[x.spec.Stages[s].App].Closed {
			continue
		}
		terms := one[s]
		if mostLeft > 0 {
			left := p.Column(milp.Column{Objective: -leftOutPrice, Upper: 1, Integer: true})
			out = append(out, milp.Term{Column: left, Coef: 1})
			terms = append(terms, milp.Term{Column: left, Coef: 1})
		}
		p.Row(1, 1, terms...)
	}
	if len(out) > 0 {
		p.Row(-milp.Inf, float64(mostLeft), out...)
	}
	x.latencies(p, takes)
	got, err := x.p.Solver.Solve(ctx, p, milp.Limits{Gap: gap, Nodes: nodes})
	if err != nil || got.Values == nil {
		return nil, err
	}
	c := &choice{offers: make([]int, len(x.spec.Stages))}
	for s := range c.offers {
		c.offers[s] = -1
	}
	for n, k := range kept {
		if got.Values[column[n]] > 0.5 {
			c.offers[x.offers[k].Stage] = k
		}
	}
	for s := range c.offers {
		if c.offers[s] < 0 && !x.spec.Apps[x.spec.Stages[s].App].Closed {
			c.left++
		}
	}
	return c, nil
}

// latencies bounds the latency of every way through every graph: a column for each stage is when its batch has ended.
// takes is by stage the time of its columns.
func (x *request) latencies(p *milp.Program, takes [][]milp.Term) {
	ends := make([]int, len(x.spec.Stages))
	for a := range x.spec.Apps {
		app := &x.spec.Apps[a]
		if app.Closed {
			continue
		}
		for _, s := range app.Stages {
			ends[s] = p.Column(milp.Column{Upper: (app.SLO.Latency - app.Slack).Seconds()})
		}
		within := func(s serving.StageID, before ...milp.Term) {
			terms := slices.Concat(before, []milp.Term{{Column: ends[s], Coef: 1}})
			for _, t := range takes[s] {
				terms = append(terms, milp.Term{Column: t.Column, Coef: -t.Coef})
			}
			p.Row(0, milp.Inf, terms...)
		}
		within(app.Stages[0])
		for _, s := range app.Stages {
			for _, e := range x.spec.Stages[s].Next {
				within(e.To, milp.Term{Column: ends[s], Coef: -1})
			}
		}
	}
}

// undominated lists the offers that no other one of the same stage and group beats at everything the program looks at.
func (x *request) undominated(part float64) (out []int) {
	beats := func(a, b int) bool {
		f, g := &x.offers[a], &x.offers[b]
		if f.Stage != g.Stage || f.Group != g.Group {
			return false
		}
		by := [...]float64{
			x.rank[f.Variant] - x.rank[g.Variant], float64(x.replicas(g, part) - x.replicas(f, part)),
			g.Run.Seconds() + x.queueing(g) - f.Run.Seconds() - x.queueing(f), float64(g.Batch - f.Batch),
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, d := range by {
			least, most = min(least, d), max(most, d)
		}
		return least >= 0 && (most > 0 || a < b)
	}
	for k := range x.offers {
		dominated := false
		for n := range x.offers {
			dominated = dominated || n != k && beats(n, k)
		}
		if !dominated {
			out = append(out, k)
		}
	}
	return out
}

// chosen returns the offer of a stage; nil where it is left out.
func (x *request) chosen(c *choice, s serving.StageID) *capacity.Offer {
	if c.offers[s] < 0 {
		return nil
	}
	return &x.offers[c.offers[s]]
}
