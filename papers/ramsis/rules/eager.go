package rules

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Eager keeps queries in a central queue. An idle instance takes, in order of deadlines, as many as the policy in force
// runs together. Instances come in order of their IDs. RAMSIS §7: workers of Jellyfish+ and ModelSwitching take up to a
// maximum batch size from the central queue.
type Eager struct{}

// Name implements route.Router.
func (Eager) Name() string { return "eager" }

// Needs implements route.Router.
func (Eager) Needs() plan.Sections { return plan.Tables }

// Traits implements route.Router.
func (Eager) Traits() route.Traits { return route.Traits{} }

// Route implements route.Router.
func (Eager) Route(v *route.View) {
	app := v.Fleet.Spec().Stages[v.Stage].App
	waiting := v.Waiting()
	for _, i := range v.Instances() {
		if waiting.Len() == 0 {
			return
		}
		if !i.Idle() {
			continue
		}
		take := max(i.Limit(), 1) // without an active variant it serves queries pinned to others
		x := v.Plan.PoliciesOf(v.Stage, i.DeviceType())
		if x != nil && waiting.Unconstrained() && waiting.SingleItems() {
			first := v.Fleet.Task(waiting.Head()).Deadline()
			take = int(x.At(v.Monitor.Recent(v.Now, app)).Choice(waiting.Len(), first.Sub(v.Now)).Queries)
		}
		for r := waiting.Head(); r != fleet.Nil && take > 0; {
			next := v.Fleet.Next(r)
			if t := v.Fleet.Task(r); v.Fleet.CanServe(i, t) {
				v.Assign(r, i)
				take -= t.Items()
			}
			r = next
		}
	}
}
