package rules

import (
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// AIMD is Clipper's reactive batching (Crankshaw et al., NSDI 2017, §4.3.1). It runs what waits at once, up to a
// target. The target grows by one after a batch in time, and shrinks by a tenth after a batch with a late query. It
// never exceeds the plan's batch limit.
type AIMD struct {
	// Release selects the variant in the code published with Proteus, for comparisons with its results. The target
	// moves over 1, 2, 4 and 8, and no smaller batch starts, so that queries of a short queue wait until they are
	// dropped.
	Release bool
}

// backoff is the multiplicative decrease of Clipper §4.3.1.
const backoff = 0.9

// Name implements batch.Rule.
func (AIMD) Name() string { return "aimd" }

// Needs implements batch.Rule.
func (AIMD) Needs() plan.Sections { return plan.Limits }

// Traits implements batch.Rule.
func (AIMD) Traits() batch.Traits { return batch.Traits{} }

// New implements batch.Rule.
func (r AIMD) New() batch.Batcher {
	if r.Release {
		return &releaseAIMD{target: 1}
	}
	return &aimd{target: 1}
}

type aimd struct{ target float64 }

func (a *aimd) Decide(v *batch.View) batch.Decision {
	a.target = min(a.target, float64(v.Limit))
	n, items := v.Fit(max(int(a.target), v.Head().Items()))
	if items >= int(a.target) || n < v.Ready {
		return v.RunFirst(n, batch.Full)
	}
	return v.RunFirst(n, batch.Idle)
}

// Finished implements batch.Batcher.
func (a *aimd) Finished(_ int, late bool) {
	if late {
		a.target = max(1, a.target*backoff)
	} else {
		a.target++
	}
}

// releaseAIMD is AIMD as in the release of Proteus.
type releaseAIMD struct{ target int }

func (s *releaseAIMD) Decide(v *batch.View) batch.Decision {
	for s.target > v.Limit && s.target > 1 {
		s.target /= 2
	}
	n, items := v.Fit(max(s.target, v.Head().Items()))
	if items >= s.target || n < v.Ready {
		return v.RunFirst(n, batch.Full)
	}
	return batch.WaitUntil(serving.Never)
}

// Finished implements batch.Batcher.
func (s *releaseAIMD) Finished(_ int, late bool) {
	if late {
		s.target = max(1, s.target/2)
	} else {
		s.target = min(8, s.target*2)
	}
}
