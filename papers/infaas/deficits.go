package infaas

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// action is a worker that changes what it hosts. If that leaves the donor stage short, one of the donor's other workers
// changes to a faster variant.
type action struct {
	from, to       int     // options; from is idle for an idle worker
	slower, faster int     // the donor's change, or idle
	added          float64 // items/s that the stage in need gets, up to what it lacks
	lost           float64 // weighted mean accuracy that is lost
	rank           int     // the lower, the less disturbance: idle worker, own worker, spare worker, other's worker
}

// closeDeficits brings stages that carry less than they need up to it, and reports whether it changed anything. For
// each stage it takes the action that closes the gap at the least accuracy (INFaaS §4.2: replicate, or change to a
// faster variant, whichever costs less), else the action that costs least, and repeats. More important apps come first,
// then the stage with the smallest part of its need.
func (x *state) closeDeficits() (changed bool) {
	blocked := make([]bool, len(x.stages))
	for {
		at, part := -1, 0.0
		for s := range x.stages {
			st := &x.stages[s]
			if blocked[s] || st.workers == 0 || st.carries(st.rate, 1) {
				continue
			}
			heavier := at >= 0 && x.spec.Apps[st.App].Weight > x.spec.Apps[x.stages[at].App].Weight
			lighter := at >= 0 && x.spec.Apps[st.App].Weight < x.spec.Apps[x.stages[at].App].Weight
			if p := st.rate / st.need; at < 0 || heavier || !lighter && p < part {
				at, part = s, p
			}
		}
		if at < 0 {
			return changed
		}
		a := x.bestAction(at)
		if a == nil {
			blocked[at] = true
			continue
		}
		x.move(a.from, a.to)
		if a.slower != idle {
			x.move(a.slower, a.faster)
		}
		changed = true
	}
}

// bestAction returns the best action for a stage in need; nil when none helps.
func (x *state) bestAction(s int) *action {
	st := &x.stages[s]
	missing := st.need - st.rate
	var best *action
	try := func(a action) {
		rate, accuracy := x.afterMove(serving.StageID(s), a.from, a.to)
		a.added = min(rate-st.rate, missing)
		a.lost += st.weight * (st.accuracy() - accuracy)
		if a.added > tolerance*st.need && (best == nil || a.better(best, missing*(1-tolerance))) {
			best = &a
		}
	}
	donors := x.donors(s)
	for _, to := range st.options {
		g := x.options[to].group
		if x.idle[g] > 0 {
			try(action{from: idle, to: to, slower: idle, faster: idle})
		}
		for _, from := range st.options {
			if x.counts[from] > 0 && from != to && x.options[from].group == g {
				try(action{from: from, to: to, slower: idle, faster: idle, rank: 1})
			}
		}
		for _, d := range donors {
			if x.options[d.from].group == g {
				d.to = to
				try(d)
			}
		}
	}
	return best
}

// better reports whether a is preferred to b: actions that close the gap first, then by accuracy lost, rate added and
// disturbance. Among actions that do not close the gap, those that lose nothing count as equal in that. Otherwise slow
// instances of the most accurate variant would use up the idle workers one by one.
func (a *action) better(b *action, missing float64) bool {
	closes := a.added >= missing
	if closes != (b.added >= missing) {
		return closes
	}
	y, z := a.lost, b.lost
	if !closes {
		y, z = max(y, 0), max(z, 0)
	}
	switch {
	case math.Abs(y-z) > tolerance*(math.Abs(y)+math.Abs(z)):
		return y < z
	case math.Abs(a.added-b.added) > tolerance*(a.added+b.added):
		return a.added > b.added
	}
	return a.rank < b.rank
}

// donors lists the workers that other stages can give up, by what they host. Such a stage carries its need without the
// worker, as it is or after one of its other workers has changed to a faster variant. Changes of several workers are
// not considered: the planner is greedy.
func (x *state) donors(s int) []action {
	var out []action
	for t := range x.stages {
		st := &x.stages[t]
		if t == s || st.workers < 2 || !st.carries(st.rate, 1) {
			continue
		}
		for _, k := range st.options {
			if x.counts[k] == 0 {
				continue
			}
			rate, accuracy := x.afterMove(serving.StageID(t), k, idle)
			if st.carries(rate, 1) {
				out = append(out, action{
					from: k, slower: idle, faster: idle, lost: st.weight * (st.accuracy() - accuracy), rank: 2,
				})
			} else if a, ok := x.swapToFree(t, k); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// swapToFree finds the change of one of stage t's workers at the least accuracy that lets the stage do without another
// worker.
func (x *state) swapToFree(t, without int) (best action, ok bool) {
	st := &x.stages[t]
	rate, weighted := st.rate-x.options[without].rate, st.weighted-x.options[without].rate*x.options[without].accuracy
	for _, slower := range st.options {
		if n := x.counts[slower]; n == 0 || n == 1 && slower == without {
			continue
		}
		y := &x.options[slower]
		for _, faster := range st.options {
			z := &x.options[faster]
			if z.group != y.group || z.rate <= y.rate || !st.carries(rate-y.rate+z.rate, 1) {
				continue
			}
			accuracy := (weighted - y.rate*y.accuracy + z.rate*z.accuracy) / (rate - y.rate + z.rate)
			if cost := st.weight * (st.accuracy() - accuracy); !ok || cost < best.lost {
				best, ok = action{from: without, slower: slower, faster: faster, lost: cost, rank: 3}, true
			}
		}
	}
	return best, ok
}
