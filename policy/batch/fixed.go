package batch

import "github.com/sluice-serving/sluice/policy/plan"

// Fixed runs batches of exactly Size items, as Scrooge §3.3 plans them, or of the plan's batch limit when Size is 0.
// The paper's steady streams fill every batch. Real traffic may not: then a smaller batch starts at the last moment for
// its first query.
type Fixed struct{ Size int }

// Name implements Rule.
func (Fixed) Name() string { return "fixed" }

// Needs implements Rule.
func (Fixed) Needs() plan.Sections { return plan.Limits }

// Traits implements Rule.
func (Fixed) Traits() Traits { return Traits{} }

// New implements Rule. The rule keeps no state.
func (f Fixed) New() Batcher { return fixed{size: f.Size} }

type fixed struct {
	NoLearning
	size int
}

func (f fixed) Decide(v *View) Decision {
	size := v.Limit
	if f.size > 0 {
		size = min(size, max(f.size, v.Head().Items()))
	}
	n, items := v.Fit(size)
	if n < v.Ready || items >= size {
		return v.RunFirst(n, Full)
	}
	if last := v.Earliest(n).Add(-v.Latency(items)); v.Now < last {
		return WaitUntil(last)
	}
	return v.RunFirst(n, MustStart)
}
