package batch

import "github.com/sluice-serving/sluice/policy/plan"

// AIMD is Clipper's reactive batching (Crankshaw et al., NSDI 2017, §4.3.1): run at once what waits, at most a target that
// grows by one after a batch in time and shrinks by a tenth after one in which a query was late. The target never exceeds
// the plan's batch limit. (The Proteus release moves the target over 1, 2, 4, 8 and starts nothing below it, so that a
// short queue waits for ever; that is not repeated here.)
type AIMD struct{}

// backoff is the multiplicative decrease of Clipper §4.3.1.
const backoff = 0.9

// Name implements Rule.
func (AIMD) Name() string { return "aimd" }

// Needs implements Rule.
func (AIMD) Needs() plan.Sections { return plan.Limits }

// New implements Rule.
func (AIMD) New() Batcher { return &aimd{target: 1} }

type aimd struct{ target float64 }

func (a *aimd) Decide(v *View) Decision {
	a.target = min(a.target, float64(v.Limit))
	n, items := v.Fit(max(int(a.target), int(v.Head().Items)))
	if items >= int(a.target) || n < v.Ready {
		return v.run(n, Full)
	}
	return v.run(n, Idle)
}

// Finished implements Observer.
func (a *aimd) Finished(_ int, late bool) {
	if late {
		a.target = max(1, a.target*backoff)
	} else {
		a.target++
	}
}
