package batch

import "github.com/sluice-serving/sluice/policy/plan"

// EarlyDrop is Nexus's work-conserving batching (Shen et al., SOSP 2019, §4.3). As soon as the instance is free, it
// runs the largest batch that ends before its first query expires. It drops a first query that would be late even in a
// batch of one.
type EarlyDrop struct{}

// Name implements Rule.
func (EarlyDrop) Name() string { return "earlydrop" }

// Needs implements Rule.
func (EarlyDrop) Needs() plan.Sections { return plan.Limits }

// Traits implements Rule.
func (EarlyDrop) Traits() Traits { return Traits{} }

// New implements Rule. The rule keeps no state.
func (EarlyDrop) New() Batcher { return earlyDrop{} }

type earlyDrop struct{ NoLearning }

func (earlyDrop) Decide(v *View) Decision {
	all, items := v.Fit(v.Limit)
	n, _ := v.Fit(v.InTime(v.Earliest(all), items))
	switch {
	case n == all && (n < v.Ready || items >= v.Limit):
		return v.RunFirst(n, Full)
	case n > 0:
		return v.RunFirst(n, Idle)
	case v.MayDrop:
		// When priorities differ, the earliest deadline may belong to a query behind the head. The head may still be in
		// time.
		if n, _ = v.Fit(v.InTime(v.Head().Deadline(), items)); n > 0 {
			return v.RunFirst(n, Idle)
		}
		// A query that has used up its stage's budget may still be in time at the end.
		if n, _ = v.Fit(v.InTime(v.Head().LatestEnd(), items)); n > 0 {
			return v.RunFirst(n, Idle)
		}
		return Decision{Action: Drop, Reason: TooLate}
	}
	return v.RunFirst(all, Idle)
}
