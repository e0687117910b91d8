package rules

import (
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Adaptive is Proteus's proactive, non-work-conserving batching (§5). With q queries waiting, it waits for one more
// until T_max_wait(q+1) = T_exp(1) - T_process(q+1): the last start with which a batch of q+1 ends before the first
// query expires. Then it runs the q it has.
//
// The paper assumes that q queries always fit before the first expiry. After a long batch they may not. Then the
// largest batch that saves the first query runs, provided the remaining queries can follow in time. Otherwise the first
// query is dropped, as in the authors' release and in Nexus: a small batch for one query would make many others late.
type Adaptive struct{}

// Name implements batch.Rule.
func (Adaptive) Name() string { return "adaptive" }

// Needs implements batch.Rule.
func (Adaptive) Needs() plan.Sections { return plan.Limits }

// Traits implements batch.Rule.
func (Adaptive) Traits() batch.Traits { return batch.Traits{} }

// New implements batch.Rule. The rule keeps no state.
func (Adaptive) New() batch.Batcher { return adaptive{} }

type adaptive struct{ batch.NoLearning }

func (adaptive) Decide(v *batch.View) batch.Decision {
	n, items := v.Fit(v.Limit)
	first := v.Earliest(n)
	if v.Now.Add(v.Latency(items)) > first {
		return shrinkOrDrop(v, n, items)
	}
	if n < v.Ready || items >= v.Limit {
		return v.RunFirst(n, batch.Full)
	}
	// Cases 1 and 2 of §5. A query that has not arrived yet is taken to have one item.
	last := first.Add(-v.Latency(items + 1))
	if v.Now >= last {
		return v.RunFirst(n, batch.MustStart)
	}
	return batch.WaitUntil(last)
}

// shrinkOrDrop decides when a batch of the first n queries would end after the first of them expires.
func shrinkOrDrop(v *batch.View, n, items int) batch.Decision {
	smaller, smallerItems := v.Fit(v.InTime(v.Head().Deadline(), items))
	if !v.MayDrop {
		return v.RunFirst(n, batch.MustStart) // every query is served: the largest batch clears the backlog soonest
	}
	if smaller == 0 {
		// The stage's budget is used up. Later stages may have more than they need.
		if smaller, smallerItems = v.Fit(v.InTime(v.Head().LatestEnd(), items)); smaller == 0 {
			return batch.Decision{Action: batch.Drop, Reason: batch.TooLate}
		}
	}
	if smaller == n {
		return v.RunFirst(n, batch.MustStart)
	}
	r := v.Instance.Queue().Head()
	for range smaller {
		r = v.Fleet.Next(r)
	}
	rest := max(items-smallerItems, 1)
	if v.Now.Add(v.Latency(smallerItems)+v.Latency(rest)) <= v.Fleet.Task(r).LatestEnd() {
		return v.RunFirst(smaller, batch.MustStart)
	}
	return batch.Decision{Action: batch.Drop, Reason: batch.TooCostly}
}
