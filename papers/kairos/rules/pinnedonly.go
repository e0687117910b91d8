package rules

import (
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// pinnedOnly is a stage's ready instances without an active variant: what they hold is below the app's floor and serves
// only queries that are pinned to it. Rules that compare instances by their active variants leave them out, and have
// their queries served here. Otherwise such a query would wait for ever where nothing is dropped.
type pinnedOnly []*fleet.Instance

// serve gives waiting queries to free instances, first come first served.
func (p pinnedOnly) serve(v *route.View) {
	for _, i := range p {
		for r := v.Waiting().Head(); r != fleet.Nil && route.HasSpareSlot(i); {
			next := v.Fleet.Next(r)
			if v.Fleet.CanServe(i, v.Fleet.Task(r)) {
				v.Assign(r, i)
			}
			r = next
		}
	}
}

// mayServe reports whether a query is for one of the instances, busy ones included.
func (p pinnedOnly) mayServe(v *route.View, t *fleet.Task) bool {
	for _, i := range p {
		if v.Fleet.CanServe(i, t) {
			return true
		}
	}
	return false
}
