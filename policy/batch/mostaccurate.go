package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// MostAccurate chooses the variant of every batch: the most accurate one loaded that can take everything that waits in
// one batch and end it before the first deadline. So accuracy is given up as the queue grows and won back as it
// shrinks, with no plan and no knob. It is work-conserving. When no variant can take everything in time, the one that
// serves most items a second runs the largest batch that is in time.
//
// It is greedy selection (the most accurate model that meets the earliest deadline) plus the condition on the batch
// limit: limits are half the objective, so that whoever arrives while the batch runs can still make the next one. Ours.
type MostAccurate struct{}

// Name implements Rule.
func (MostAccurate) Name() string { return "mostaccurate" }

// Needs implements Rule.
func (MostAccurate) Needs() plan.Sections { return plan.Limits }

// Traits implements Rule.
func (MostAccurate) Traits() Traits { return Traits{Chooses: true} }

// New implements Rule. The rule keeps no state.
func (MostAccurate) New() Batcher { return mostAccurate{} }

type mostAccurate struct{ unlearned }

func (mostAccurate) Decide(v *View) Decision {
	if !v.Instance.Queue().Plain() {
		// Queries that want a variant of their own: the engine's choice for the first of them stands.
		return earlyDrop{}.Decide(v)
	}
	all := v.Ready
	first := v.earliest(min(all, v.most()))
	best := -1
	for at := range v.Instance.Variants() {
		l := v.Instance.Variant(at)
		if !l.Usable() || v.Items > l.Limit || v.Now.Add(v.latencyOf(l, v.Items)) > first {
			continue
		}
		if best < 0 || v.better(at, best) {
			best = at
		}
	}
	if best >= 0 {
		return Decision{Action: Run, N: all, Variant: v.Instance.Variant(best).Variant, Reason: Idle}
	}
	// Too much waits: whoever clears it soonest.
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

// most is the largest batch limit of the instance's variants.
func (v *View) most() int {
	m := 1
	for at := range v.Instance.Variants() {
		m = max(m, v.Instance.Variant(at).Limit)
	}
	return m
}

func (v *View) latencyOf(l fleet.Loaded, items int) time.Duration {
	return v.Fleet.Latency(l.Variant, v.Instance.DeviceType(), items, v.Fleet.Concurrency(v.Instance)+1)
}

// better tells whether variant a of the instance is more accurate than b, or as accurate and faster.
func (v *View) better(a, b int) bool {
	x, y := v.Instance.Variant(a), v.Instance.Variant(b)
	ax, ay := v.Fleet.Spec().Variants[x.Variant].Accuracy, v.Fleet.Spec().Variants[y.Variant].Accuracy
	if ax != ay {
		return ax > ay
	}
	return v.latencyOf(x, v.Items) < v.latencyOf(y, v.Items)
}
