package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/algo/lp"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// prices are what a second of each group's machines is worth: the duals of
//
//	maximise    sum_c value_c y_c - sum_ocg loss_o u_ocg
//	subject to  y_c                     <= demand_c        tasks/s of class c, that arrive or wait
//	            sum_c items_cs y_c      <= sum_og u_ocg    the items of a stage are served by its options
//	            sum_oc time_ocg u_ocg   <= supply_g        in the time of the group's machines
//
// demand is 1.05 times the rate of arrivals, and what waits spread over the horizon: two mean objectives.
// supply is the slots that are free within the horizon. time_ocg is the time for an item in the best batch that can
// fill within the objective at the present flow. loss is what the option's accuracy falls short of the best.
type prices struct {
	outdated  bool
	at        serving.Time
	classesAt serving.Time
	program   lp.Program
	terms     []lp.Term
	edges     [mostClasses]int32
	rows      []int // by StageID: row of its first class's demand; the rows of items follow those of demand
	items     []int
}

const (
	// every is how often prices are computed.
	every = 10 * time.Millisecond
	// headroom is the rate that is planned for, relative to that seen.
	headroom = 1.05
	// horizon is over how long the time of machines is shared out, in mean objectives.
	horizon = 2.0
	// fill is how much of a batch arrives in the time that its objective leaves for it.
	fill = 0.7
	// mostPivots bounds the work for prices. A program that needs more keeps its last prices.
	mostPivots = 5000
)

// updatePrices computes prices and worth when they are due.
func (r *Rule) updatePrices(v *route.View) {
	p := &r.prices
	if !p.outdated && v.Now < p.at.Add(every) {
		return
	}
	r.observe(v)
	p.at, p.outdated = v.Now, false
	if !r.NoPrices {
		r.solve(v)
	}
	for a := range r.apps {
		x := &r.apps[a]
		for at := x.graph.Len() - 1; at >= 0; at-- {
			r.tabulate(x, &r.stages[x.graph.Stage(at)])
		}
	}
}

// solve computes the price of each group.
func (r *Rule) solve(v *route.View) {
	p := &r.prices
	span := r.span()
	groups := r.machines.groups
	r.supply(v, span)
	rows := len(groups)
	p.rows, p.items = p.rows[:0], p.items[:0]
	for s := range r.stages {
		x := &r.stages[s]
		p.rows = append(p.rows, rows)
		rows += len(x.classes)
		p.items = append(p.items, rows)
		if r.apps[x.app].graph.Len() > 1 {
			rows += len(x.classes)
		}
	}
	p.program.Reset(rows)
	for g := range groups {
		p.program.Limit(g, groups[g].supply)
	}
	for s := range r.stages {
		x := &r.stages[s]
		for c := range x.classes {
			y := &x.classes[c]
			p.program.Limit(p.rows[s]+c, headroom*y.rate+y.waits/span)
			if r.apps[x.app].graph.Len() > 1 {
				r.addFlow(x, c)
			}
			r.addOptions(x, c)
		}
	}
	if p.program.Solve(mostPivots) != lp.Optimal {
		return
	}
	for g := range groups {
		groups[g].price = max(p.program.Dual(g), groups[g].least)
	}
}

// span returns the horizon in seconds.
func (r *Rule) span() float64 {
	sum, n := 0.0, 0.0
	for a := range r.apps {
		if s := &r.stages[r.apps[a].graph.Stage(0)]; len(s.groups) > 0 {
			sum, n = sum+r.apps[a].slo, n+1
		}
	}
	return horizon * sum / max(n, 1)
}

// supply sums up the time that each group's machines have within the horizon.
func (r *Rule) supply(v *route.View, span float64) {
	for g := range r.machines.groups {
		x := &r.machines.groups[g]
		x.supply = 0
		for k := range x.machines {
			y := &r.machines.list[x.first+k]
			x.supply += float64(y.slots)
			if y.running > 0 {
				if end, ok := x.ends.Key(k); ok {
					left := serving.Time(end).Sub(v.Now).Seconds()
					x.supply -= float64(min(y.running, y.slots)) * min(max(left, 0), span) / span
				}
			}
		}
	}
}

// addFlow adds the column of the tasks of a class that enter at a stage: items for it and for the stages that follow.
func (r *Rule) addFlow(x *stage, c int) {
	p := &r.prices
	p.terms = append(p.terms[:0], lp.Term{Row: p.rows[x.id] + c, Coef: 1})
	r.addItems(x, c, x.classes[c].mean)
	p.program.Add(x.value, math.Inf(1), p.terms...)
}

// addItems adds so many items at a stage to the terms of a column, and those that follow from them.
func (r *Rule) addItems(x *stage, c int, items float64) {
	p := &r.prices
	row := p.items[x.id] + c
	found := false
	for k := range p.terms {
		if p.terms[k].Row == row {
			p.terms[k].Coef += items
			found = true
		}
	}
	if !found {
		p.terms = append(p.terms, lp.Term{Row: row, Coef: items})
	}
	for k := range x.next {
		r.addItems(&r.stages[x.next[k].stage], 0, items*x.next[k].items)
	}
}

// addOptions adds the columns of the ways to serve a class at a stage.
func (r *Rule) addOptions(x *stage, c int) {
	p := &r.prices
	a := &r.apps[x.app]
	mean := x.classes[c].mean
	for _, g := range x.groups {
		y := &r.machines.groups[g]
		for k := y.of[x.id][0]; k < y.of[x.id][1]; k++ {
			o := &y.options[k]
			if o.pinned {
				continue
			}
			t := o.timePerItem(int(math.Ceil(mean)), x.flow(a), x.budget, a.slo)
			if t <= 0 {
				continue
			}
			if a.graph.Len() > 1 {
				p.terms = append(p.terms[:0], lp.Term{Row: int(g), Coef: t}, lp.Term{Row: p.items[x.id] + c, Coef: -1})
				p.program.Add(-x.value*(1-o.quality)/mean, math.Inf(1), p.terms...)
				continue
			}
			p.terms = append(p.terms[:0], lp.Term{Row: int(g), Coef: t * mean}, lp.Term{Row: p.rows[x.id] + c, Coef: 1})
			p.program.Add(x.value*o.quality, math.Inf(1), p.terms...)
		}
	}
}

// timePerItem returns the least time of a slot that an item takes, in s, over the batches that can fill; 0 where not
// even a task of so many items is in time.
func (o *option) timePerItem(size int, flow, budget, slo float64) float64 {
	best := 0.0
	for b := size; b <= o.limit; b = more(b) {
		t := o.seconds[b]
		if !fills(b, size, t, flow, budget, slo) {
			break
		}
		if x := t / float64(b); best == 0 || x < best {
			best = x
		}
	}
	return best
}

// fills reports whether a batch of b items that takes t seconds can fill within the time that the objective leaves. One
// task alone always can.
func fills(b, size int, t, flow, budget, slo float64) bool {
	return t <= slo && (b <= size || float64(b) <= fill*flow*(budget-t))
}

// more returns the next batch size to look at: every one up to 16, then an eighth more.
func more(b int) int { return b + 1 + b/16*2 }
