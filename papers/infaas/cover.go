package infaas

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// cover gives every stage without an instance one, the more important apps first. An app gets none if there are too few
// workers for all of its stages, because an app with a missing stage answers nothing.
func (x *state) cover() {
	apps := make([]serving.AppID, len(x.spec.Apps))
	for a := range apps {
		apps[a] = serving.AppID(a)
	}
	slices.SortStableFunc(apps, func(a, b serving.AppID) int {
		switch y, z := x.spec.Apps[a].Weight, x.spec.Apps[b].Weight; {
		case y > z:
			return -1
		case y < z:
			return 1
		}
		return 0
	})
	for _, a := range apps {
		counts := slices.Clone(x.counts)
		for _, s := range x.spec.Apps[a].Stages {
			if x.stages[s].workers == 0 && !x.obtainWorker(s, make([]bool, len(x.groups))) {
				x.restore(counts)
				break
			}
		}
	}
}

// restore sets the counts, by option, and adjusts the idle workers.
func (x *state) restore(counts []int) {
	for k, n := range counts {
		x.idle[x.options[k].group] += x.counts[k] - n
		x.add(k, n-x.counts[k])
	}
}

// obtainWorker finds one more worker for a stage: an idle one, else one of a stage that has several, else the only one
// of a stage that obtains another in turn. This is an augmenting path, so a stage is left out only if no assignment
// serves it. seen marks the groups that were tried already.
func (x *state) obtainWorker(s serving.StageID, seen []bool) bool {
	if k := x.bestOnFree(s); k >= 0 {
		x.move(idle, k)
		return true
	}
	if from, to := x.spareWorker(s); to >= 0 {
		x.move(from, to)
		return true
	}
	for _, to := range x.stages[s].options {
		g := x.options[to].group
		if seen[g] {
			continue
		}
		seen[g] = true
		for from := range x.options {
			o := &x.options[from]
			if x.counts[from] > 0 && o.group == g && o.stage != s && x.obtainWorker(o.stage, seen) {
				x.move(from, x.bestInGroup(s, g))
				return true
			}
		}
	}
	return false
}

// bestOnFree returns the option that a stage should host on an idle worker: the most accurate variant that carries its
// need alone, else the fastest; -1 when no idle worker suits.
func (x *state) bestOnFree(s serving.StageID) int {
	return x.best(s, func(group int) bool { return x.idle[group] > 0 })
}

// bestInGroup returns the option that a stage should host on a worker of group g, chosen like bestOnFree.
func (x *state) bestInGroup(s serving.StageID, g int) int {
	return x.best(s, func(group int) bool { return group == g })
}

func (x *state) best(s serving.StageID, usable func(group int) bool) int {
	best := -1
	for _, k := range x.stages[s].options {
		o := &x.options[k]
		if !usable(o.group) {
			continue
		}
		if x.stages[s].carries(o.rate, 1) {
			return k
		}
		if best < 0 || o.rate > x.options[best].rate {
			best = k
		}
	}
	return best
}

// spareWorker finds a worker of a stage that has several: the one without which its stage keeps the largest part of its
// need. It returns idle and -1 when there is none.
func (x *state) spareWorker(s serving.StageID) (from, to int) {
	from, to = idle, -1
	most := 0.0
	for k := range x.options {
		o := &x.options[k]
		t := &x.stages[o.stage]
		if x.counts[k] == 0 || t.workers < 2 {
			continue
		}
		fit := x.bestInGroup(s, o.group)
		if fit < 0 {
			continue
		}
		rate, _ := x.afterMove(o.stage, k, idle)
		if left := rate / max(t.need, tolerance); to < 0 || left > most {
			from, to, most = k, fit, left
		}
	}
	return from, to
}
