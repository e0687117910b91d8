package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// FillTimeout waits until the batch is full or its first query has waited for a time-out (INFless §3.2; also the rule
// of Triton and TensorFlow Serving). The time-out is the plan's Hold, which INFless derives as the objective less the
// execution time of a full batch; Timeout, where positive, replaces it.
type FillTimeout struct{ Timeout time.Duration }

// Name implements Rule.
func (FillTimeout) Name() string { return "filltimeout" }

// Needs implements Rule.
func (f FillTimeout) Needs() plan.Sections {
	if f.Timeout > 0 {
		return plan.Limits
	}
	return plan.Limits | plan.Holds
}

// Traits implements Rule.
func (FillTimeout) Traits() Traits { return Traits{} }

// New implements Rule. The rule keeps no state.
func (f FillTimeout) New() Batcher { return fillTimeout{timeout: f.Timeout} }

type fillTimeout struct {
	unlearned
	timeout time.Duration
}

func (f fillTimeout) Decide(v *View) Decision {
	n, items := v.Fit(v.Limit)
	if n < v.Ready || items >= v.Limit {
		return v.run(n, Full)
	}
	hold := f.timeout
	if hold == 0 {
		hold = v.Instance.Hold()
	}
	// The query that waits longest is the head unless deadlines or priorities were set by clients; a head that jumped
	// the queue only makes the batch start later than the time-out of the one behind it, never later than the head's
	// own.
	if until := v.Head().ReadyAt().Add(hold); v.Now < until {
		return wait(until)
	}
	return v.run(n, TimedOut)
}
