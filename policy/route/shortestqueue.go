package route

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// ShortestQueue gives each query to the instance with the fewest queries waiting or running (RAMSIS App. I). Ties go to
// the next one in turn, so that an idle pool is used evenly.
type ShortestQueue struct{ turn []int } // by stage

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
	for len(o.turn) <= int(v.Stage) {
		o.turn = append(o.turn, 0)
	}
	all := v.Instances()
	turn := &o.turn[v.Stage]
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		best, shortest := -1, 0
		at := *turn
		for range all {
			if at >= len(all) {
				at = 0
			}
			if n := all[at].Outstanding(); (best < 0 || n < shortest) && v.Fleet.CanServe(all[at], t) {
				best, shortest = at, n
				if n == 0 {
					break
				}
			}
			at++
		}
		if best >= 0 {
			v.Assign(r, all[best])
			*turn = best + 1
		}
		r = next
	}
}
