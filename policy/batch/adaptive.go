package batch

import "github.com/sluice-serving/sluice/policy/plan"

// Adaptive is Proteus's proactive, non-work-conserving batching (§5): with q queries waiting it waits for one more
// until T_max_wait(q+1) = T_exp(1) - T_process(q+1), the last instant at which a batch of q+1 would still end before
// the first query expires, and then runs the q it has.
//
// The paper assumes that the instance is never so late that q queries no longer fit before the first expiry; after a
// long batch that happens. Then the largest batch that saves the first query runs if the rest can follow in time behind
// it; otherwise the first query is given up, as the authors' release does and as Nexus argues: saving one query with a
// small batch would make many others late.
type Adaptive struct{}

// Name implements Rule.
func (Adaptive) Name() string { return "adaptive" }

// Needs implements Rule.
func (Adaptive) Needs() plan.Sections { return plan.Limits }

// Traits implements Rule.
func (Adaptive) Traits() Traits { return Traits{} }

// New implements Rule. The rule keeps no state.
func (Adaptive) New() Batcher { return adaptive{} }

type adaptive struct{ unlearned }

func (adaptive) Decide(v *View) Decision {
	n, items := v.Fit(v.Limit)
	first := v.earliest(n)
	if v.Now.Add(v.Latency(items)) > first {
		return overdue(v, n, items)
	}
	if n < v.Ready || items >= v.Limit {
		return v.run(n, Full)
	}
	// Case 1 and 2 of §5. A query of unknown size is expected to bring one item.
	last := first.Add(-v.Latency(items + 1))
	if v.Now >= last {
		return v.run(n, MustGo)
	}
	return wait(last)
}

// overdue decides when the n queries that fill the batch would end after the first expires.
func overdue(v *View, n, items int) Decision {
	few, fewItems := v.Fit(v.InTime(v.Head().Deadline(), items))
	if !v.MayDrop {
		return v.run(n, MustGo) // everything will be served: the largest batch clears the backlog soonest
	}
	if few == 0 {
		// The stage's part of the objective is used up. What later stages are given besides what they need may still be
		// enough.
		if few, fewItems = v.Fit(v.InTime(v.Head().LatestEnd(), items)); few == 0 {
			return Decision{Action: Drop, Reason: Hopeless}
		}
	}
	if few == n {
		return v.run(n, MustGo)
	}
	r := v.Instance.Queue().Head()
	for range few {
		r = v.Fleet.Next(r)
	}
	rest := max(items-fewItems, 1)
	if v.Now.Add(v.Latency(fewItems)+v.Latency(rest)) <= v.Fleet.Task(r).LatestEnd() {
		return v.run(few, MustGo)
	}
	return Decision{Action: Drop, Reason: TooCostly}
}
