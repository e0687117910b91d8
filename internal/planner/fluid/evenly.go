package fluid

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// spread fills the machines whose memory does not hold everything so that as many as possible serve every stage: first
// with stages that carry least of their demand, then with more accurate variants of what they hold, then with the
// stages that they lack. The program fills machines so that together they carry what may come, and knows no queues:
// machines that serve the same take up the bursts of any app together.
func (x *residency) spread() {
	x.fillRoomy()
	x.cover()
	carries := make([]float64, len(x.m.stages))
	for i := range x.sites {
		for s := range carries {
			carries[s] += x.carried(i, serving.StageID(s))
		}
	}
	for _, fill := range [...]func(i int){
		func(i int) { x.serveMore(i, carries) }, x.raiseAccuracy, x.serveLacking,
	} {
		for i := range x.sites {
			if x.crowded[i] {
				fill(i)
			}
		}
	}
	x.least()
	x.fillRest()
}

// carried is the items/s that a site's machines have for a stage if they spend all their time on it.
func (x *residency) carried(i int, s serving.StageID) (most float64) {
	for j, holds := range x.sites[i].holds {
		if o := x.option(i, j); holds && o.stage == s {
			most = max(most, o.mean(x.m))
		}
	}
	return most * x.sites[i].count
}

// mean is the items/s of a machine that spends all its time on an option; 0 for one below the floor.
func (o *option) mean(m *problem) float64 {
	items, time := 0.0, 0.0
	for c, rate := range o.rates {
		if y := &m.apps[m.stages[o.stage].app].classes[c]; rate > 0 {
			items, time = items+y.share*y.items, time+y.share*y.items/rate
		}
	}
	if time == 0 {
		return 0
	}
	return items / time
}

// serveMore loads a variant of each stage that carries less than its demand and is not there, as far as memory goes:
// that which carries least first.
func (x *residency) serveMore(i int, carries []float64) {
	for {
		best, least := -1, 1.0
		for s := range x.m.stages {
			part := carries[s] / max(x.m.itemRate(serving.StageID(s)), math.SmallestNonzeroFloat64)
			if part >= least || x.hosts(i, serving.StageID(s)) {
				continue
			}
			left := (x.m.itemRate(serving.StageID(s)) - carries[s]) / x.sites[i].count
			if j := x.serving(i, serving.StageID(s), left); j >= 0 {
				best, least = j, part
			}
		}
		if best < 0 {
			return
		}
		x.load(i, best)
		carries[x.option(i, best).stage] += x.option(i, best).mean(x.m) * x.sites[i].count
	}
}

// serveLacking loads a variant of each stage that a site lacks, as far as memory goes: of those with the fewest copies
// first.
func (x *residency) serveLacking(i int) {
	order := make([]serving.StageID, len(x.m.stages))
	for s := range order {
		order[s] = serving.StageID(s)
	}
	slices.SortStableFunc(order, func(a, b serving.StageID) int { return cmp.Compare(x.copies[a], x.copies[b]) })
	for _, s := range order {
		if x.hosts(i, s) {
			continue
		}
		if j := x.serving(i, s, x.m.itemRate(s)); j >= 0 {
			x.load(i, j)
		}
	}
}

// serving returns the option of a stage that serves most of so many items/s on a machine of a site; of equals the most
// accurate; -1 where none may be loaded.
func (x *residency) serving(i int, s serving.StageID, rate float64) (best int) {
	best, most := -1, 0.0
	for j := range x.sites[i].holds {
		o := x.option(i, j)
		if o.stage != s || o.rates == nil || !x.allows(i, j) {
			continue
		}
		serves := min(o.mean(x.m), rate)
		if best < 0 || serves > most || serves == most && o.loss < x.option(i, best).loss {
			best, most = j, serves
		}
	}
	return best
}

// raiseAccuracy loads more accurate variants of the stages that a site holds, as far as memory goes: of that which is
// least accurate there first.
func (x *residency) raiseAccuracy(i int) {
	for {
		best, worst := -1, 0.0
		for s := range x.m.stages {
			loss := x.leastLoss(i, serving.StageID(s))
			if math.IsInf(loss, 1) || loss <= worst {
				continue
			}
			for j := range x.sites[i].holds {
				o := x.option(i, j)
				if o.stage != serving.StageID(s) || o.rates == nil || o.loss >= loss || !x.allows(i, j) {
					continue
				}
				if worst < loss || o.loss < x.option(i, best).loss {
					best, worst = j, loss
				}
			}
		}
		if best < 0 {
			return
		}
		x.load(i, best)
	}
}

// leastLoss returns the loss of the most accurate usable variant of a stage at a site; infinite where it has none.
func (x *residency) leastLoss(i int, s serving.StageID) float64 {
	least := math.Inf(1)
	for j, holds := range x.sites[i].holds {
		if o := x.option(i, j); holds && o.stage == s && o.rates != nil {
			least = min(least, o.loss)
		}
	}
	return least
}
