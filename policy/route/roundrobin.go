package route

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// RoundRobin gives each query to the next instance in turn (RAMSIS §4.1's dispatcher). It skips instances that cannot
// serve the query, and reads neither queues nor shares.
type RoundRobin struct{ turn []int } // by stage: index of the next instance

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
	for len(o.turn) <= int(v.Stage) {
		o.turn = append(o.turn, 0)
	}
	all := v.Instances()
	turn := &o.turn[v.Stage]
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		for k := range all {
			at := *turn + k
			for at >= len(all) {
				at -= len(all)
			}
			if v.Fleet.CanServe(all[at], t) {
				v.Assign(r, all[at])
				*turn = at + 1
				break
			}
		}
		r = next
	}
}
