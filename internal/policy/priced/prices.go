package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// prices are what a second of each group's machines is worth: the dual prices lambda of the program
//
//	maximise    sum_f value_f y_f - sum_sog loss_o u_sog
//	subject to  y_f                     <= demand_f        tasks/s of flow f, that arrive or wait
//	            sum_f items_fs y_f      <= sum_og u_sog    the items of a stage are served by its options
//	            sum_so time_sog u_sog   <= supply_g        in the time of the group's machines
//
// A flow is the tasks of a class that enter at a stage; items_fs are what they need there and at stages that follow.
// demand is the rate of arrivals and what waits, spread over the horizon. supply is the
// group's slots, in seconds as they are believed to be needed (pace.go): what runs takes some of their time first, as
// what is begun within the horizon takes some behind its end. time_sog is the time for an item in the best batch that
// can fill within the objective at the present flow. loss is what the option's accuracy falls short of the best.
//
// For given prices every item takes its cheapest option, and a flow is served where its value covers the cost. So the
// dual function has a variable for each group only, and is convex:
//
//	sum_g lambda_g supply_g + sum_f demand_f max(0, value_f - sum_s items_fs min_og (loss_o + lambda_g time_sog))
//
// It is minimised group by group. Both min and max are smoothed a little, without which such a descent may stop short
// of the minimum (solve.go).
type prices struct {
	outdated  bool
	due       serving.Time
	classesAt serving.Time
	dual      dual
	edges     [pieces]int32
	nodes     []int // by StageID: the node of its first class
}

const (
	// every is how often prices are computed, and everyEntry is added for each entry of the program. Where all
	// objectives are long it is everyObjective of the shortest: little changes in less.
	every, everyEntry = 10 * time.Millisecond, 10 * time.Microsecond
	everyObjective    = 1. / 100
	// horizon is over how long what waits is spread, in mean objectives.
	horizon = 0.8
	// mostSpread bounds the standard deviation of the demands that prices are computed for.
	mostSpread = 0.5
)

// around are the demands that prices are the mean of, by their standard deviations from the demand that is expected,
// with their weights: about a normal distribution, a little to the safe side.
var around = [...]struct{ at, weight float64 }{{-1.6, 0.12}, {-0.5, 0.22}, {0, 0.3}, {0.6, 0.22}, {1.6, 0.14}}

// updatePrices computes prices and worth when they are due.
func (r *Rule) updatePrices(v *route.View) {
	p := &r.prices
	if !p.outdated && v.Now < p.due {
		return
	}
	r.observe(v)
	span, shortest := r.objectives()
	r.solve(span)
	wait := max(every+time.Duration(len(p.dual.entries))*everyEntry, time.Duration(everyObjective*shortest*1e9))
	p.due, p.outdated = v.Now.Add(wait), false
	r.findNeeds()
	for a := range r.apps {
		x := &r.apps[a]
		for at := x.graph.Len() - 1; at >= 0; at-- {
			r.tabulate(x, &r.stages[x.graph.Stage(at)])
		}
	}
}

// solve computes the price of each group. What waits is spread over so many seconds.
func (r *Rule) solve(span float64) {
	p := &r.prices
	groups := r.machines.groups
	p.dual.reset(len(groups))
	p.nodes = p.nodes[:0]
	for g := range groups {
		x := &groups[g]
		y := &r.machines.paces[x.device]
		y.update()
		p.dual.supply[g], p.dual.price[g] = float64(x.all())/y.ratio(), x.dual
	}
	for s := range r.stages {
		p.nodes = append(p.nodes, len(p.dual.nodes))
		for c := range r.stages[s].classes {
			r.addNode(&r.stages[s], c)
		}
		r.addSecondNodes(&r.stages[s])
	}
	for s := range r.stages {
		x := &r.stages[s]
		for c := range x.classes {
			y := &x.classes[c]
			if d := y.rate + y.waits/span; d > 0 {
				p.dual.addFlow(d, x.value)
				r.addItems(x, c, y.mean)
			}
		}
		r.addSecondFlows(x, span)
	}
	if r.NoPrices {
		return
	}
	r.solveAround()
	for g := range groups {
		x := &groups[g]
		x.price = max(x.dual, x.least)
	}
}

// solveAround solves the program for the demand and for some around it, as far away as chance brings it within an
// objective, and takes the mean of their prices. The prices of one demand alone are steps: just below what the fastest
// variants carry time is cheap, just above it nothing is worth its price. Where there are several groups the steps are
// many and small, and where there is one slot each task that waits moves the demand over them: the program is solved
// for the demand alone. While the expected demand is not served whole its price is the least: with less, queues grow
// until queries are late.
func (r *Rule) solveAround() {
	p, groups := &r.prices, r.machines.groups
	if len(groups) != 1 || groups[0].all() == 1 {
		p.dual.solve()
		for g := range groups {
			groups[g].dual = p.dual.price[g]
		}
		return
	}
	x := &groups[0]
	x.dual = 0
	expected := 0.0
	for a := range r.apps {
		s := &r.stages[r.apps[a].graph.Stage(0)]
		for c := range s.classes {
			expected += s.classes[c].rate * r.apps[a].slo
		}
	}
	spread := min(1/math.Sqrt(max(expected, 1)), mostSpread)
	was, least := 1.0, 0.0
	for k, q := range around {
		factor := 1 + spread*q.at
		for f := range p.dual.flows {
			p.dual.flows[f].demand *= factor / was
		}
		was = factor
		p.dual.price[0] = x.around[k]
		p.dual.solve()
		x.around[k] = p.dual.price[0]
		x.dual += q.weight * x.around[k]
		if q.at == 0 && p.dual.sheds() {
			least = x.around[k]
		}
	}
	x.dual = max(x.dual, least)
}

// objectives returns the horizon, and the shortest objective of an app that some machine serves; 0 for none. Both are
// in s.
func (r *Rule) objectives() (span, shortest float64) {
	n := 0.0
	for a := range r.apps {
		x := &r.apps[a]
		if len(r.stages[x.graph.Stage(0)].groups) == 0 {
			continue
		}
		if span, n = span+x.slo, n+1; n == 1 || x.slo < shortest {
			shortest = x.slo
		}
	}
	if n == 0 {
		return horizon, 0
	}
	return horizon * span / n, shortest
}

// addItems adds so many items at a stage to the flow that was added last, and those that follow from them.
func (r *Rule) addItems(x *stage, c int, items float64) {
	r.prices.dual.addItems(r.prices.nodes[x.id]+c, items)
	for k := range x.next {
		r.addItems(&r.stages[x.next[k].stage], 0, items*x.next[k].items)
	}
}

// addNode adds the ways to serve a class at a stage.
func (r *Rule) addNode(x *stage, c int) {
	y := &x.classes[c]
	least := r.addWays(x, c, noSecond, x.value, y.mean, 1)
	y.takes = 0
	if !math.IsInf(least, 1) {
		y.takes = x.tasksOf(c) * y.mean * least
	}
}

// addWays adds the ways to serve tasks of a stage that are worth so much and have so many items in the mean. They are
// of a class, or have an answer and so much of the worth of a query of one item. It returns the least time that an item
// takes, in s; infinite where nothing serves it.
func (r *Rule) addWays(x *stage, c, second int, value, mean, part float64) (least float64) {
	p, a := &r.prices, &r.apps[x.app]
	least = math.Inf(1)
	p.dual.addNode(value / mean)
	for _, g := range x.groups {
		options := r.machines.groups[g].serving(x)
		for k := range options {
			o := &options[k]
			if !x.improves(o, second) {
				continue
			}
			if t := o.timePerItem(int(math.Ceil(mean)), x.flow(a), x.budget, a.slo); t > 0 {
				p.dual.addEntry(int(g), t, (x.lossOf(o, second, part)-x.usualOnward(a, o, c, second, t))/mean)
				least = min(least, t)
			}
		}
	}
	return least
}

// timePerItem returns the least time of a slot that an item takes, in s, over the batches that can fill; 0 where not
// even a task of so many items is in time.
func (o *option) timePerItem(size int, flow, within, slo float64) float64 {
	best := 0.0
	for b := size; b <= o.limit; b = more(b) {
		t := o.seconds[b]
		if !fills(b, size, t, flow, within, slo) {
			break
		}
		if x := t / float64(b); best == 0 || x < best {
			best = x
		}
	}
	return best
}

// fills reports whether a batch of b items that takes t seconds can fill and run within a time. One task alone always
// can, if the objective leaves it time.
func fills(b, size int, t, flow, within, slo float64) bool {
	return t <= slo && (b <= size || float64(b) <= flow*(within-t))
}

// more returns the next batch size to look at: every one up to 16, then an eighth more.
func more(b int) int { return b + 1 + b/16*2 }
