package batch

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// AsRouted runs at once all that the router has queued, on the variant it has chosen (fleet.Instance.Choice): for
// routers that make up batches themselves. Where the router left the variant open, or the variant is gone meanwhile,
// MostAccurate decides.
type AsRouted struct{}

// Name implements Rule.
func (AsRouted) Name() string { return "asrouted" }

// Needs implements Rule.
func (AsRouted) Needs() plan.Sections { return 0 }

// Traits implements Rule.
func (AsRouted) Traits() Traits { return Traits{NeedsChoice: true, Chooses: true} }

// New implements Rule.
func (AsRouted) New() Batcher { return asRouted{} }

type asRouted struct{ unlearned }

func (asRouted) Decide(v *View) Decision {
	c := v.Instance.Choice()
	if q := v.Instance.Queue(); c != serving.None && q.Plain() && q.Unit() {
		if at := v.Instance.Find(c); at >= 0 {
			if l := v.Instance.Variant(at); l.Usable() && v.Ready <= l.Limit {
				return Decision{Action: Run, N: v.Ready, Variant: c, Reason: Routed}
			}
		}
	}
	return mostAccurate{}.Decide(v)
}
