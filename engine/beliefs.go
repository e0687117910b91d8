package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// beliefs is what is believed of latency, and what follows from it: how much of a query's time later stages need.
type beliefs struct {
	*world
	agenda  *agenda
	base    profile.Profile // of batches that do not balloon
	current profile.Profile // base, inflated by ballooning
	learner profile.Learner // base's; nil where latency is not learned
	epoch   uint64          // of the learner, that what is derived from it was derived at

	ballooning []float64 // by stage, the time that batches take for each second of base; nil for none
	altered    bool      // current is not, or was not always, the profile that the engine was made with
	changed    bool      // current has changed since this step's work was done

	budgets []time.Duration // by stage, of the plan in force; nil where it has none
	// By stage, what is to be left of a query's time when it is done: tails as the plan has it, needs if later stages
	// have nobody wait. They are the same where the plan does not say.
	tails, needs []time.Duration

	tooLate int // queries that were believed to be too late while an instance was idle
}

// probeEvery is of how many queries that are believed to be too late, while an instance is idle, one is run.
const probeEvery = 32

func newBeliefs(w *world, a *agenda, p profile.Profile) *beliefs {
	b := &beliefs{world: w, agenda: a, base: p, current: p, learner: p.Learner()}
	b.needs = b.leastTails()
	b.tails = b.needs
	return b
}

// observe learns from a batch that ended well.
func (b *beliefs) observe(i *fleet.Instance, x *fleet.Batch, took time.Duration) {
	if b.learner != nil {
		b.learner.Observe(x.Variant, i.DeviceType(), x.Items, x.Concurrency, took)
	}
}

// update takes up what was learned. Changes that do not move the learner's epoch are left: until it moves, the times at
// which queries are dropped are off by no more than such a change.
func (b *beliefs) update() {
	if b.learner != nil && b.learner.Epoch() != b.epoch {
		b.epoch = b.learner.Epoch()
		b.agenda.changeBasis()
		b.recompute()
	}
}

// recompute derives anew what follows from latencies and budgets, and has everything looked at.
func (b *beliefs) recompute() {
	b.needs = b.leastTails()
	if b.tails = b.needs; b.budgets != nil {
		b.tails = b.budgetTails()
	}
	b.fleet.ProfileChanged()
	b.agenda.all()
}

// setBudgets takes up those of a plan, by stage; nil for none. Tails of an earlier plan stay where it has none.
func (b *beliefs) setBudgets(budgets []time.Duration) {
	if b.budgets = budgets; budgets != nil {
		b.tails = b.budgetTails()
	}
}

// inflate has batches believed to balloon by factors, by stage; nil for none.
func (b *beliefs) inflate(ballooning []float64) {
	b.ballooning, b.altered, b.changed = ballooning, true, true
	b.apply()
	b.recompute()
}

func (b *beliefs) apply() {
	if b.current = b.base; b.ballooning != nil {
		b.current = profile.Inflated{Profile: b.base, Spec: b.spec, Factors: b.ballooning}
	}
	b.fleet.SetProfile(b.current)
}

// grow takes up a spec that has grown, with what was measured of all of it. Where latency is learned, measured is what
// learning begins with for what is new, and may be nil.
func (b *beliefs) grow(measured profile.Profile) {
	b.altered = true
	if b.learner != nil {
		b.learner.Grow(b.spec, measured)
	} else {
		b.base = measured
	}
	b.apply()
}

// forPlanner returns what planners are to believe; nil where it is what they were made with.
func (b *beliefs) forPlanner() profile.Profile {
	switch {
	case b.learner != nil:
		return b.learner.Frozen()
	case b.altered:
		return b.current
	}
	return nil
}

// probe reports whether to run a query that is believed to be too late on arrival, and has the fleet let it. One in
// probeEvery is run, if an instance stands idle that could take it: a belief that is too pessimistic would keep
// everything from running that could correct it.
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

// correctable tells whether batches of a stage that run may change what is believed of them.
func (b *beliefs) correctable(s serving.StageID) bool {
	return b.learner != nil || int(s) < len(b.ballooning) && b.ballooning[s] > 1
}

// leastTails are tails with which no later stage has anybody wait.
func (b *beliefs) leastTails() []time.Duration { return b.tailsOf(b.least) }

// budgetTails are tails of the plan's budgets. Stages that the plan does not know yet take the least time they need.
func (b *beliefs) budgetTails() []time.Duration {
	return b.tailsOf(func(s serving.StageID) time.Duration {
		if int(s) < len(b.budgets) {
			return b.budgets[s]
		}
		return b.least(s)
	})
}

// least is the least time believed to be needed at a stage; 0 where nothing is known of it.
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

// tailsOf is by stage what is to be left of a query's time when the stage is done: what later stages need, and the
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
