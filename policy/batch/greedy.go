package batch

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Greedy runs everything that waits as one batch. It takes the most accurate variant that ends it before the first
// deadline, or the fastest one when none does. RAMSIS §2.2 argues against selection by the present batch alone.
type Greedy struct{}

// Name implements Rule.
func (Greedy) Name() string { return "greedy" }

// Needs implements Rule.
func (Greedy) Needs() plan.Sections { return 0 }

// Traits implements Rule.
func (Greedy) Traits() Traits { return Traits{Chooses: true} }

// New implements Rule. The rule keeps no state.
func (Greedy) New() Batcher { return greedy{} }

type greedy struct{ NoLearning }

func (greedy) Decide(v *View) Decision {
	if !v.Instance.Queue().Unconstrained() || !v.Instance.Queue().SingleItems() {
		return mostAccurate{}.Decide(v)
	}
	largest := 1 // the largest batch that any variant takes
	for at := range v.Instance.Variants() {
		if l := v.Instance.Variant(at); l.Usable() {
			largest = max(largest, v.Fleet.Spec().Variants[l.Variant].MaxBatch)
		}
	}
	n := min(v.Ready, largest)
	left := v.Earliest(n).Sub(v.Now)
	best, fastest := -1, -1
	for at := range v.Instance.Variants() {
		l := v.Instance.Variant(at)
		if !l.Usable() || l.Limit < n {
			continue
		}
		if took := v.latencyOf(l, n); took < profile.Unknown {
			if fastest < 0 || took < v.latencyOf(v.Instance.Variant(fastest), n) {
				fastest = at
			}
			if took <= left && (best < 0 || v.moreAccurate(at, best)) {
				best = at
			}
		}
	}
	if best < 0 {
		best = fastest
	}
	if best < 0 {
		return mostAccurate{}.Decide(v)
	}
	return Decision{Action: Run, N: n, Variant: v.Instance.Variant(best).Variant, Reason: Idle}
}
