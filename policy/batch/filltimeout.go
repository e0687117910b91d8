package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// FillTimeout waits until the batch is full or its first query has waited for a time-out (INFless §3.2; also the rule
// of Triton and TensorFlow Serving). The time-out is the plan's BatchTimeout: INFless takes the objective less the
// execution time of a full batch. Timeout, where positive, replaces it.
type FillTimeout struct{ Timeout time.Duration }

// Name implements Rule.
func (FillTimeout) Name() string { return "filltimeout" }

// Needs implements Rule.
func (f FillTimeout) Needs() plan.Sections {
	if f.Timeout > 0 {
		return plan.Limits
	}
	return plan.Limits | plan.BatchTimeouts
}

// Traits implements Rule.
func (FillTimeout) Traits() Traits { return Traits{} }

// New implements Rule. The rule keeps no state.
func (f FillTimeout) New() Batcher { return fillTimeout{timeout: f.Timeout} }

type fillTimeout struct {
	NoLearning
	timeout time.Duration
}

func (f fillTimeout) Decide(v *View) Decision {
	n, items := v.Fit(v.Limit)
	if n < v.Ready || items >= v.Limit {
		return v.RunFirst(n, Full)
	}
	timeout := f.timeout
	if timeout == 0 {
		timeout = v.Instance.BatchTimeout()
	}
	// The head waits longest unless clients set deadlines or priorities. A head that overtook others may start the
	// batch later than their time-outs, but never later than its own.
	if until := v.Head().ReadyAt().Add(timeout); v.Now < until {
		return WaitUntil(until)
	}
	return v.RunFirst(n, TimedOut)
}
