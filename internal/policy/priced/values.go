package priced

import "math"

// tabulate computes what a task of each class is worth by the time that its query has left: the best that a batch which
// can fill will bring for it, less the machine time that the batch costs for it; 0 where nothing is in time or worth
// its price. after is what is left of the query's value when the stage is done: all of it at the last stage, and less
// the costs of the stages that follow elsewhere.
func (r *Rule) tabulate(a *app, x *stage) {
	x.after = sized(x.after, steps+1)
	for j := range x.after {
		x.after[j] = x.value
		for k := range x.next {
			to := &r.stages[x.next[k].stage]
			then := j - int(math.Ceil(to.delta/a.slo*steps))
			left := 0.0
			if then >= 0 {
				left = max(to.tables[0].values[then], 0)
			}
			x.after[j] -= x.next[k].share * max(to.value-left, 0)
		}
		x.after[j] = max(x.after[j], 0)
	}
	for len(x.tables) < len(x.classes) {
		x.tables = append(x.tables, table{})
	}
	for k := range x.seconds {
		y := &x.seconds[k]
		y.tables = sized(y.tables, x.answered(len(x.classes)-1)+1)
		for c := range y.tables {
			r.fill(a, x, &y.tables[c], c, k)
		}
	}
	x.findOnward(a)
	for c := range x.classes {
		r.fill(a, x, &x.tables[c], c, noSecond)
	}
}

// table is what tasks are worth, by the time that is left for their query.
type table struct {
	values []float64
	costs  []float64 // what of its value a task costs: of the batch that brings it
}

// fill computes a table of tasks of a class, or of an item of such a one that has an answer.
func (r *Rule) fill(a *app, x *stage, to *table, c, second int) {
	to.values, to.costs = sized(to.values, steps+1), sized(to.costs, steps+1)
	for j := range to.values {
		to.values[j], to.costs[j] = math.Inf(-1), 0
	}
	firsts := x.firsts
	if second >= 0 {
		firsts = nil
	}
	r.least = sized(r.least, (1+len(firsts))*(steps+1))
	for k := range r.least {
		r.least[k] = math.Inf(1)
	}
	for _, g := range x.groups {
		y := &r.machines.groups[g]
		options := y.serving(x)
		together := 1
		if y.scarce() {
			together = x.siblings
		}
		for k := range options {
			if o := &options[k]; x.improves(o, second) {
				row, first := 0, x.firstOf(o)
				for n := range firsts {
					if first == &firsts[n] {
						row = n + 1
					}
				}
				x.addCosts(a, r.least[row*(steps+1):][:steps+1], c, second, o, y.price, together)
			}
		}
	}
	for row := range 1 + len(firsts) {
		var first *first
		if row > 0 {
			first = &firsts[row-1]
		}
		for from, cost := range r.least[row*(steps+1):][:steps+1] {
			if !math.IsInf(cost, 1) {
				x.addValue(to, c, second, first, from, cost)
			}
		}
	}
	for j := 1; j <= steps; j++ {
		if to.values[j] < to.values[j-1] {
			to.values[j], to.costs[j] = to.values[j-1], to.costs[j-1]
		}
	}
}

// addCosts lowers the costs of batches, by the steps that they take, to those of an option.
func (x *stage) addCosts(a *app, least []float64, c, second int, o *option, price float64, together int) {
	mean, most, part := x.classes[c].mean, x.classes[c].most, x.partOf(c, second)
	if second >= 0 {
		mean, most = 1, 1
	}
	size := int(math.Ceil(mean))
	if most <= o.limit {
		size = max(size, most) // all of the class are in time
	}
	flow := x.flow(a)
	for b := size; b <= o.limit; b = further(b) {
		t := o.seconds[b]
		if !fills(b, size, t, flow, x.within, a.slo) {
			return
		}
		cost := x.lossOf(o, second, part) + price*t*mean/float64(b)
		t = max(t, o.seconds[min(together, o.limit)])
		from := int(math.Ceil(t / a.slo * steps * (1 - 1e-9)))
		least[from] = min(least[from], cost)
	}
}

// addValue raises what tasks are worth to what a batch brings that takes so many steps and costs so much.
func (x *stage) addValue(to *table, c, second int, first *first, from int, cost float64) {
	values, costs := to.values, to.costs
	worth := x.partOf(c, second) * x.worthOf(second)
	if len(x.next) == 0 && first == nil {
		if y := worth - cost; y > values[from] {
			values[from], costs[from] = y, cost
		}
		return
	}
	for j := from; j <= steps; j++ {
		y := x.after[j-from] - cost
		switch {
		case second >= 0 && x.after[j-from] <= 0:
			continue // a better answer is too late for the stages behind
		case first != nil:
			y += first.worth(c, j-from) - x.wants*first.shortBy(c, j-from)
		case second >= 0 && !x.seconds[second].short:
			y += worth - x.after[j]
		}
		if y > values[j] {
			values[j], costs[j] = y, cost
		}
	}
}

// further returns the next batch size to tabulate: every one up to 4, then a third more.
func further(b int) int { return b + 1 + b/5 }

// step returns the row of a table for a time left, in seconds; -1 where none is left.
func (a *app) step(left float64) int {
	if left < 0 {
		return -1
	}
	return min(int(left/a.slo*steps+1e-9), steps)
}

// valueOf returns what a task of a class is worth with so many seconds left for its query, if it has part of the value
// of a usual one and takes so many times as long as those of its class.
func (x *stage) valueOf(a *app, c int, left, part, long float64) float64 {
	j := a.step(left)
	if j < 0 || c >= len(x.tables) {
		return 0
	}
	return x.tables[c].at(j, part, long)
}

// at returns the value at a step; see valueOf.
func (y *table) at(j int, part, long float64) float64 {
	return max(part*(y.values[j]+y.costs[j])-long*y.costs[j], 0)
}

// brings returns what is left of a task's value when its stage is done with so many seconds left for its query.
func (x *stage) brings(a *app, left float64) float64 {
	if len(x.next) == 0 {
		return x.value
	}
	if j := a.step(left); j >= 0 {
		return x.after[j]
	}
	return 0
}

// sized returns n numbers, in the memory of x where that suffices.
func sized[T float64 | int32 | table](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
