package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// beliefs holds the believed latencies and what follows from them: how much of a query's time later stages need.
type beliefs struct {
	*world
	agenda  *agenda
	base    profile.Profile // of batches that do not balloon
	current profile.Profile // base, inflated by ballooning and capped by memory
	learner profile.Learner // base's; nil where latency is not learned
	lengths lengths
	epoch   uint64 // the learner's, at the last recomputation

	ballooning []float64            // factors by stage; nil for 1
	most       map[profile.Cell]int // items for which there is memory; nil where nothing was learned
	starts     []time.Duration      // of machines, by device type; nil where none was learned
	altered    bool                 // current has ever differed from the engine's first profile
	changed    bool                 // current has changed since the work of this step

	budgets []time.Duration // by stage, of the plan in force; nil where it has none
	// By stage, the time of a query that must be left when the stage is done: tails by the plan's budgets, needs if
	// later stages make no query wait. They are equal without budgets.
	tails, needs []time.Duration

	tooLate int // queries that were believed to be too late while an instance was idle
}

// unbudgeted is the budget of a stage that the plan in force does not know.
const unbudgeted time.Duration = -1

// probeEvery is how many queries, believed too late while an instance is idle, come to one probe.
const probeEvery = 32

func newBeliefs(w *world, a *agenda, p profile.Profile) *beliefs {
	b := &beliefs{world: w, agenda: a, base: p, current: p, learner: p.Learner()}
	s := profile.StretchesOf(p)
	if b.lengths = (lengths{world: w, stretches: s, overheads: s.Overheads(), measured: s.Overheads()}); s != nil {
		b.apply()
	}
	b.needs = b.leastTails()
	b.tails = b.needs
	return b
}

// observe learns from a batch that ended well.
func (b *beliefs) observe(i *fleet.Instance, x *fleet.Batch, took time.Duration) {
	if b.learner != nil && !x.Overlaps {
		b.learner.Observe(x.Variant, i.DeviceType(), x.Items, x.Concurrency, b.lengths.atReference(i, x, b.base, took))
	}
}

// update applies what was learned, once the learner's epoch has changed, or the mean length of queries. Smaller changes
// wait: drop times are off by no more than those.
func (b *beliefs) update() {
	if b.lengths.changed {
		b.lengths.enforce(b.base)
		b.altered = true
		b.apply()
		b.agenda.changeBasis()
		b.recompute()
	}
	if b.learner != nil && b.learner.Epoch() != b.epoch {
		b.epoch = b.learner.Epoch()
		b.agenda.changeBasis()
		b.recompute()
	}
}

// recompute derives everything that follows from latencies and budgets.
func (b *beliefs) recompute() {
	b.needs = b.leastTails()
	if b.tails = b.needs; b.budgets != nil {
		b.tails = b.budgetTails()
	}
	b.fleet.ProfileChanged()
	b.agenda.all()
}

// setBudgets applies the budgets of a plan, by stage; nil for none. Without budgets, tails of an earlier plan stay.
func (b *beliefs) setBudgets(budgets []time.Duration) {
	if b.budgets = budgets; budgets != nil {
		b.tails = b.budgetTails()
	}
}

// inflate sets the believed ballooning factors, by stage; nil for 1.
func (b *beliefs) inflate(ballooning []float64) {
	b.ballooning, b.altered, b.changed = ballooning, true, true
	b.apply()
	b.recompute()
}

func (b *beliefs) apply() {
	if b.current = b.base; b.ballooning != nil {
		b.current = profile.Inflated{Profile: b.base, Spec: b.spec, Factors: b.ballooning}
	}
	b.current = b.within(b.current)
	b.fleet.SetProfile(b.current)
}

// setStarts sets how long machines are believed to take to come, by device type. They are part of load times, on which
// no deadline depends: nothing has to be computed anew.
func (b *beliefs) setStarts(starts []time.Duration) {
	b.starts, b.altered = starts, true
	b.apply()
}

// cap sets how large batches may be, in items. most must not change any more.
func (b *beliefs) cap(most map[profile.Cell]int) {
	b.most, b.altered, b.changed = most, true, true
	b.apply()
	b.recompute()
}

// within returns a profile without the batches for which memory is lacking, with the starts of machines and with
// lengths.
func (b *beliefs) within(p profile.Profile) profile.Profile {
	if b.most != nil {
		p = profile.Capped{Profile: p, Most: b.most}
	}
	if b.starts != nil {
		p = profile.Started{Profile: p, Starts: b.starts}
	}
	return b.lengths.around(p)
}

// grow extends beliefs to a spec that has grown. measured covers all of it. Where latency is learned, it is the start
// for new variants and may be nil.
func (b *beliefs) grow(measured profile.Profile, fresh *serving.Fresh) {
	b.altered = true
	if b.learner != nil {
		b.learner.Grow(b.spec, measured, fresh.Variants)
	} else {
		b.base = measured
	}
	b.lengths.grow(b.base, fresh)
	b.budgets, b.ballooning = slices.Clone(b.budgets), slices.Clone(b.ballooning)
	serving.Forget(b.budgets, fresh.Stages, unbudgeted)
	serving.Forget(b.ballooning, fresh.Stages, 1)
	b.apply()
}

// forPlanner returns the beliefs for planners; nil where planners were made with the same.
func (b *beliefs) forPlanner() profile.Profile {
	switch {
	case b.learner != nil:
		return b.within(b.learner.Frozen())
	case b.altered:
		return b.current
	}
	return nil
}

// probe reports whether to run a query that is believed to be too late on arrival, and lets the fleet run it. One in
// probeEvery is run if an idle instance could take it. Otherwise a belief that is too pessimistic would keep out every
// batch that could correct it.
func (b *beliefs) probe(ref fleet.Ref) bool {
	t := b.fleet.Task(ref)
	if !b.correctable(t.Stage()) || t.Deadline() <= b.now {
		return false
	}
	for _, i := range b.fleet.Ready(t.Stage()) {
		if i.Idle() && b.fleet.CanServe(i, t) {
			if b.tooLate++; b.tooLate%probeEvery == 0 {
				b.fleet.Probe(ref)
				return true
			}
			break
		}
	}
	return false
}

// correctable reports whether batches of a stage may change beliefs about it.
func (b *beliefs) correctable(s serving.StageID) bool {
	return b.learner != nil || int(s) < len(b.ballooning) && b.ballooning[s] > 1
}

// leastTails are the tails with which no later stage makes a query wait.
func (b *beliefs) leastTails() []time.Duration { return b.tailsOf(b.least) }

// budgetTails are the tails of the plan's budgets. Stages that are new to the plan take the least time they need.
func (b *beliefs) budgetTails() []time.Duration {
	return b.tailsOf(func(s serving.StageID) time.Duration {
		if int(s) < len(b.budgets) && b.budgets[s] != unbudgeted {
			return b.budgets[s]
		}
		return b.least(s)
	})
}

// least is the least believed time at a stage; 0 where there is no belief.
func (b *beliefs) least(s serving.StageID) time.Duration {
	best := profile.Unknown
	for _, v := range b.spec.Stages[s].Variants {
		if b.spec.Variants[v].Retired || b.spec.BelowFloor(v) {
			continue
		}
		for _, w := range b.spec.Workers {
			best = min(best, b.current.Latency(v, w.DeviceType, 1, 1))
		}
	}
	if best == profile.Unknown {
		return 0
	}
	return best
}

// tailsOf is by stage the time of a query that must be left when the stage is done: the need of later stages and the
// app's slack.
func (b *beliefs) tailsOf(need func(serving.StageID) time.Duration) []time.Duration {
	tails := make([]time.Duration, len(b.spec.Stages))
	for _, a := range b.spec.Apps {
		for at := len(a.Stages) - 1; at >= 0; at-- {
			s := a.Stages[at]
			tails[s] = a.Slack
			for _, edge := range b.spec.Stages[s].Next {
				tails[s] = max(tails[s], tails[edge.To]+need(edge.To))
			}
		}
	}
	return tails
}
