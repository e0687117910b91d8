package priced

import (
	"math"

	"github.com/sluice-serving/sluice/policy/route"
)

// blocked is what is lost while the last free machine that is fast enough for a class of tasks runs a batch: those that
// come meanwhile and have no time left afterwards.
type blocked struct {
	group int     // of the last free machine
	rate  float64 // value of the tasks that come, per second
	slack float64 // s that one of them can wait for that machine
	until float64 // s after which a task that comes is in time on another machine
}

// findBlocked lists the classes of tasks for which only one machine is free.
func (r *Rule) findBlocked(v *route.View) {
	r.blocked = r.blocked[:0]
	for s := range r.stages {
		x := &r.stages[s]
		if x.rate == 0 {
			continue
		}
		for c := range x.classes {
			if y, ok := r.machines.lastFree(x, c, v); ok {
				y.rate = x.rate * x.classes[c].share / x.meanSize() * x.value
				r.blocked = append(r.blocked, y)
			}
		}
	}
}

// lastFree reports whether only one free machine is fast enough for a class of tasks, and what a batch there blocks.
func (f *fleetOfMachines) lastFree(x *stage, c int, v *route.View) (y blocked, ok bool) {
	free := 0
	for k, g := range x.groups {
		if n := f.groups[g].free; n > 0 && x.takes(c, k) <= x.longest {
			if free += n; free > 1 {
				return y, false
			}
			y.group, y.slack = int(g), x.longest-x.takes(c, k)
		}
	}
	if free == 0 {
		return y, false
	}
	y.until = math.Inf(1)
	for k, g := range x.groups {
		if took := x.takes(c, k); took <= x.longest {
			if _, end, some := f.groups[g].ends.Min(); some {
				y.until = min(y.until, float64(end-int64(v.Now))/1e9-(x.longest-took))
			}
		}
	}
	return y, y.until > 0
}

// blocks returns what a batch that takes t seconds on a group's machine is expected to cost by blocking.
func (r *Rule) blocks(g int, t float64) (cost float64) {
	for k := range r.blocked {
		if y := &r.blocked[k]; y.group == g {
			cost += y.rate * max(min(t-y.slack, y.until), 0)
		}
	}
	return cost
}

// measure computes how long a task of each class takes on each group's machines: on the fastest variant for the largest
// task of the class.
func (x *stage) measure(r *Rule) {
	x.times = x.times[:0]
	for c := range x.classes {
		items := max(x.classes[c].most, 1)
		for _, g := range x.groups {
			least := math.Inf(1)
			options := r.machines.groups[g].serving(x)
			for k := range options {
				if o := &options[k]; !o.pinned && items <= o.limit {
					least = min(least, o.seconds[items])
				}
			}
			x.times = append(x.times, least)
		}
	}
}

// takes returns what measure has found for a class on the machines of x.groups[k].
func (x *stage) takes(c, k int) float64 { return x.times[c*len(x.groups)+k] }

// fastest returns the least time of a class on any machine.
func (x *stage) fastest(c int) float64 {
	least := math.Inf(1)
	for k := range x.groups {
		least = min(least, x.takes(c, k))
	}
	return least
}

// untilNext is how long, in seconds, a task of a class that is left behind waits at least for a machine that is fast
// enough for it when one batch begins now.
func (f *fleetOfMachines) untilNext(x *stage, c int, v *route.View) float64 {
	free, next := 0, int64(math.MaxInt64)
	for k, g := range x.groups {
		if x.takes(c, k) > x.longest {
			continue
		}
		if free += f.groups[g].free; free > 1 {
			return leastWait
		}
		if _, end, ok := f.groups[g].ends.Min(); ok {
			next = min(next, end)
		}
	}
	if next == math.MaxInt64 {
		return leastWait
	}
	return max(float64(next-int64(v.Now))/1e9, leastWait)
}
