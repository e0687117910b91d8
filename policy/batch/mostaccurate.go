package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// MostAccurate chooses the variant of every batch: the most accurate one loaded that can take all waiting queries in
// one batch and end it before the first deadline. So accuracy falls as the queue grows and rises as it shrinks, without
// a plan. The rule is work-conserving. When no variant can take all queries in time, the variant with the most items
// per second runs the largest batch that is in time.
//
// This is greedy selection with a condition on the batch limit: limits take half the objective, so that queries that
// arrive during a batch can be in time in the next one. Ours.
type MostAccurate struct{}

// Name implements Rule.
func (MostAccurate) Name() string { return "mostaccurate" }

// Needs implements Rule.
func (MostAccurate) Needs() plan.Sections { return plan.Limits }

// Traits implements Rule.
func (MostAccurate) Traits() Traits { return Traits{Chooses: true} }

// New implements Rule. The rule keeps no state.
func (MostAccurate) New() Batcher { return mostAccurate{} }

type mostAccurate struct{ NoLearning }

func (mostAccurate) Decide(v *View) Decision {
	if !v.Instance.Queue().Unconstrained() {
		// Some query has requirements of its own: the engine's choice for the first one holds.
		return earlyDrop{}.Decide(v)
	}
	all := v.Ready
	first := v.Earliest(min(all, v.maxLimit()))
	best := -1
	for at := range v.Instance.Variants() {
		l := v.Instance.Variant(at)
		if !l.Usable() || v.Items > l.Limit || v.Now.Add(v.latencyOf(l, v.Items)) > first {
			continue
		}
		if best < 0 || v.moreAccurate(at, best) {
			best = at
		}
	}
	if best >= 0 {
		return Decision{Action: Run, N: all, Variant: v.Instance.Variant(best).Variant, Reason: Idle}
	}
	// Too much waits for one batch: take the variant with the highest throughput.
	fastest, rate := -1, 0.0
	for at := range v.Instance.Variants() {
		l := v.Instance.Variant(at)
		if !l.Usable() || l.Limit < v.Head().Items() {
			continue
		}
		items := min(l.Limit, v.Items)
		if r := float64(items) / float64(v.latencyOf(l, items)); fastest < 0 || r > rate {
			fastest, rate = at, r
		}
	}
	l := v.Instance.Variant(fastest)
	w := *v
	w.Variant, w.Limit = l.Variant, l.Limit
	return earlyDrop{}.Decide(&w)
}

// maxLimit returns the largest batch limit, in items, of the instance's variants.
func (v *View) maxLimit() int {
	m := 1
	for at := range v.Instance.Variants() {
		m = max(m, v.Instance.Variant(at).Limit)
	}
	return m
}

func (v *View) latencyOf(l fleet.Loaded, items int) time.Duration {
	return v.Fleet.Latency(l.Variant, v.Instance.DeviceType(), items, v.Fleet.Concurrency(v.Instance)+1)
}

// moreAccurate reports whether the a-th variant of the instance is more accurate than the b-th, or as accurate and
// faster.
func (v *View) moreAccurate(a, b int) bool {
	x, y := v.Instance.Variant(a), v.Instance.Variant(b)
	ax, ay := v.Fleet.Spec().Variants[x.Variant].Accuracy, v.Fleet.Spec().Variants[y.Variant].Accuracy
	if ax != ay {
		return ax > ay
	}
	return v.latencyOf(x, v.Items) < v.latencyOf(y, v.Items)
}
