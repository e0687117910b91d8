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
				left = max(to.values[0][then], 0)
			}
			x.after[j] -= x.next[k].share * max(to.value-left, 0)
		}
		x.after[j] = max(x.after[j], 0)
	}
	for len(x.values) < len(x.classes) {
		x.values, x.costs = append(x.values, nil), append(x.costs, nil)
	}
	for c := range x.classes {
		x.values[c], x.costs[c] = sized(x.values[c], steps+1), sized(x.costs[c], steps+1)
		for j := range x.values[c] {
			x.values[c][j], x.costs[c][j] = math.Inf(-1), 0
		}
		for _, g := range x.groups {
			y := &r.machines.groups[g]
			options := y.serving(x)
			together := 1
			if y.scarce() {
				together = x.siblings
			}
			for k := range options {
				x.addValue(a, c, &options[k], y.price, together)
			}
		}
		for j := 1; j <= steps; j++ {
			if x.values[c][j] < x.values[c][j-1] {
				x.values[c][j], x.costs[c][j] = x.values[c][j-1], x.costs[c][j-1]
			}
		}
	}
}

// addValue raises the worth of a class to what an option brings.
func (x *stage) addValue(a *app, c int, o *option, price float64, together int) {
	values, costs, mean := x.values[c], x.costs[c], x.classes[c].mean
	size := int(math.Ceil(mean))
	if most := x.classes[c].most; most <= o.limit {
		size = max(size, most) // all of the class are in time
	}
	flow := x.flow(a)
	for b := size; b <= o.limit; b = further(b) {
		t := o.seconds[b]
		if !fills(b, size, t, flow, x.within, a.slo) {
			return
		}
		cost := x.loss(o) + price*t*mean/float64(b)
		t = max(t, o.seconds[min(together, o.limit)])
		from := int(math.Ceil(t / a.slo * steps * (1 - 1e-9)))
		if len(x.next) == 0 {
			if x.value-cost > values[from] {
				values[from], costs[from] = x.value-cost, cost
			}
			continue
		}
		for j := from; j <= steps; j++ {
			if y := x.after[j-from] - cost; y > values[j] {
				values[j], costs[j] = y, cost
			}
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
	if j < 0 || c >= len(x.values) {
		return 0
	}
	return max(part*(x.values[c][j]+x.costs[c][j])-long*x.costs[c][j], 0)
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
func sized[T float64 | int32](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
