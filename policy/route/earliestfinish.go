package route

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// EarliestFinish gives each query on arrival to the queue of the instance on which it is believed to end first. It
// knows when every instance becomes free and what already waits there. It is the central controller of Clockwork, as
// Kairos §7 uses it for the baseline CLKWRK. A query is late only if it would be late on every instance. Ties go to the
// lowest ID.
type EarliestFinish struct{}

// NewEarliestFinish returns the rule.
func NewEarliestFinish() EarliestFinish { return EarliestFinish{} }

// Name implements Router.
func (EarliestFinish) Name() string { return "earliestfinish" }

// Needs implements Router.
func (EarliestFinish) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (EarliestFinish) Traits() Traits { return Traits{} }

// Route implements Router. Each query costs time linear in the stage's instances.
func (EarliestFinish) Route(v *View) {
	all := v.Instances()
	v.each(func(_ fleet.Ref, t *fleet.Task) *fleet.Instance {
		var best *fleet.Instance
		var soonest time.Duration
		for _, i := range all {
			if !v.Fleet.CanServe(i, t) {
				continue
			}
			if end := v.Fleet.Backlog(i, v.Now, t.Items()); best == nil || end < soonest {
				best, soonest = i, end
			}
		}
		return best
	})
}
