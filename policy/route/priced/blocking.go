package priced

import "github.com/sluice-serving/sluice/policy/route"

// blocked is what is lost while no machine is free for a stage: the tasks that come meanwhile and have no time left
// afterwards.
type blocked struct {
	rate    float64 // value of the tasks that come, per second
	slack   float64 // s that one of them can wait
	forLong float64 // s until another machine is free
}

// findBlocked lists the stages that a batch on the last free machine would block for longer than their tasks can wait.
func (r *Rule) findBlocked(v *route.View) {
	r.blocked = r.blocked[:0]
	for s := range r.stages {
		x := &r.stages[s]
		if x.rate == 0 || len(x.groups) == 0 {
			continue
		}
		y := blocked{slack: x.budget - x.least, forLong: r.machines.untilNext(x, v.Now)}
		if y.forLong > y.slack {
			y.rate = x.rate / x.meanSize() * x.value
			r.blocked = append(r.blocked, y)
		}
	}
}

// blocks returns what a batch that takes t seconds is expected to cost by blocking.
func (r *Rule) blocks(t float64) (cost float64) {
	for k := range r.blocked {
		y := &r.blocked[k]
		cost += y.rate * max(min(t, y.forLong)-y.slack, 0)
	}
	return cost
}
