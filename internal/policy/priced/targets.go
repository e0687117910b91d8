package priced

import (
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// accuracyPrice is by how much more than usual the accuracy of an app's answers counts, so that their mean keeps the
// app's accuracy target: the price of that constraint. It rises while the answers are below the target and falls while
// they are above it.
type accuracyPrice struct {
	multiplier
	count    uint64 // answers at the last look
	accuracy float64
}

// accuracyGain is by how much it changes in a second for each part of the best accuracy that the answers are below
// their target.
const accuracyGain = 6

// keepTargets brings what accuracy counts up to date, about once a second.
func (r *Rule) keepTargets(v *route.View) {
	spec := v.Fleet.Spec()
	for len(r.accuracy) < len(spec.Apps) {
		r.accuracy = append(r.accuracy, accuracyPrice{})
	}
	for a := range spec.Apps {
		target, best := spec.Apps[a].AccuracyTarget, spec.BestAccuracy(serving.AppID(a))
		x := &r.accuracy[a]
		if target <= 0 || best <= 0 {
			x.more = 0
			continue
		}
		count, sum := v.Monitor.Answers(serving.AppID(a))
		if count == x.count || !x.due(v.Now) {
			continue
		}
		mean := (sum - x.accuracy) / float64(count-x.count)
		x.count, x.accuracy = count, sum
		x.move(v.Now, accuracyGain, (target-mean)/best)
	}
}

// emphasise sets how much accuracy counts at each stage, and how much more an answer is worth for it: serving comes
// before targets, so that even the least accurate answer is worth what it is without a target.
func (r *Rule) emphasise() {
	for a := range r.apps {
		x := &r.apps[a]
		more, most := 0.0, 0.0
		if a < len(r.accuracy) {
			more = r.accuracy[a].more
		}
		for at := range x.graph.Len() {
			s := &r.stages[x.graph.Stage(at)]
			s.emphasis = 1 + more
			most += s.mostLoss
		}
		x.bonus = more * most
	}
}

// findLosses finds by how much the accuracy of the stage's options falls short of the best: of the least accurate one,
// and whether there is a choice.
func (r *Rule) findLosses(x *stage) {
	least := 1.0
	x.mostLoss = 0
	for _, g := range x.groups {
		for _, o := range r.machines.groups[g].serving(x) {
			least, x.mostLoss = min(least, 1-o.quality), max(x.mostLoss, 1-o.quality)
		}
	}
	x.chooses = x.mostLoss > least
}

// loss is what a task of the stage loses by an option's accuracy.
func (x *stage) loss(o *option) float64 { return x.right * x.emphasis * (1 - o.quality) }
