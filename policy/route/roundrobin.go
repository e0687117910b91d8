package route

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// RoundRobin gives each query to the next instance in turn (RAMSIS §3.2.1's dispatcher). It skips instances that cannot
// serve the query, and reads neither queues nor shares.
type RoundRobin struct{ ByStage[int] } // index of the next instance

// NewRoundRobin returns the rule at the start of its first turn.
func NewRoundRobin() *RoundRobin { return &RoundRobin{} }

// Name implements Router.
func (*RoundRobin) Name() string { return "roundrobin" }

// Needs implements Router.
func (*RoundRobin) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (*RoundRobin) Traits() Traits { return Traits{} }

// Route implements Router.
func (o *RoundRobin) Route(v *View) {
	all, turn := v.Instances(), o.Of(v.Stage)
	v.each(func(_ fleet.Ref, t *fleet.Task) *fleet.Instance {
		for k := range all {
			if at := (*turn + k) % len(all); v.Fleet.CanServe(all[at], t) {
				*turn = at + 1
				return all[at]
			}
		}
		return nil
	})
}
