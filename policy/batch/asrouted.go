package batch

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// AsRouted runs everything that the router has queued, at once, on the variant that it has chosen
// (fleet.Instance.Choice). It is for routers that form batches. Where the router chose no variant, or the variant is no
// longer usable, MostAccurate decides.
type AsRouted struct{}

// Name implements Rule.
func (AsRouted) Name() string { return "asrouted" }

// Needs implements Rule.
func (AsRouted) Needs() plan.Sections { return 0 }

// Traits implements Rule.
func (AsRouted) Traits() Traits { return Traits{NeedsChoice: true, Chooses: true} }

// New implements Rule.
func (AsRouted) New() Batcher { return asRouted{} }

type asRouted struct{ NoLearning }

func (asRouted) Decide(v *View) Decision {
	c := v.Instance.Choice()
	if q := v.Instance.Queue(); c != serving.None && q.Unconstrained() {
		if at := v.Instance.Find(c); at >= 0 {
			if l := v.Instance.Variant(at); l.Usable() && v.Items <= l.Limit {
				return Decision{Action: Run, N: v.Ready, Variant: c, Reason: Routed}
			}
		}
	}
	return mostAccurate{}.Decide(v)
}
