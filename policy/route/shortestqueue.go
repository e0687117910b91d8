package route

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// ShortestQueue gives each query to the instance with the fewest queries waiting or running (RAMSIS App. I). Ties go to
// the next one in turn, so that an idle pool is used evenly.
type ShortestQueue struct{ ByStage[int] } // index of the next instance in turn

// NewShortestQueue returns the rule.
func NewShortestQueue() *ShortestQueue { return &ShortestQueue{} }

// Name implements Router.
func (*ShortestQueue) Name() string { return "shortestqueue" }

// Needs implements Router.
func (*ShortestQueue) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (*ShortestQueue) Traits() Traits { return Traits{} }

// Route implements Router. Each query costs time linear in the stage's instances.
func (o *ShortestQueue) Route(v *View) {
	all, turn := v.Instances(), o.Of(v.Stage)
	v.each(func(_ fleet.Ref, t *fleet.Task) *fleet.Instance {
		best, shortest := -1, 0
		first := *turn
		if first >= len(all) {
			first = 0
		}
		for k := range all {
			at := (first + k) % len(all)
			if n := all[at].Outstanding(); (best < 0 || n < shortest) && v.Fleet.CanServe(all[at], t) {
				if best, shortest = at, n; n == 0 {
					break
				}
			}
		}
		if best < 0 {
			return nil
		}
		*turn = best + 1
		return all[best]
	})
}
