package infaas

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// cover gives every stage that has none an instance, the more important apps first. An app for whose stages the workers
// do not suffice gets none: with a stage missing it could answer nothing.
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

// restore takes back moves.
func (x *state) restore(counts []int) {
	for k, n := range counts {
		x.idle[x.options[k].group] += x.counts[k] - n
		x.add(k, n-x.counts[k])
	}
}

// secure finds another worker for a stage: a free one, else one of a stage that has several, else the only one of a
// stage that finds another itself (an augmenting path, so that a stage is left out only when there is no way). Groups
// that were seen have been asked already.
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

// first is what a stage should host on a free worker: the most accurate variant that carries its need alone, else the
// fastest; -1 when no free worker suits.
func (x *state) bestOnFree(s serving.StageID) int {
	best := -1
	for _, k := range x.stages[s].options {
		o := &x.options[k]
		if x.idle[o.group] == 0 {
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

// fit is what a stage should host on a worker of a group that it gets: chosen as by first.
func (x *state) bestInGroup(s serving.StageID, g int) int {
	best := -1
	for _, k := range x.stages[s].options {
		o := &x.options[k]
		if o.group != g {
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

// spare finds a worker of a stage that has several, preferably one that its stage can do without, else the one of the
// stage that has the largest part of its need. It returns free and -1 when there is none.
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
		able, _ := x.afterMove(o.stage, k, idle)
		if left := able / max(t.need, tolerance); to < 0 || left > most {
			from, to, most = k, fit, left
		}
	}
	return from, to
}
