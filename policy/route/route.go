// Package route decides which instance a waiting query goes to. One file, one rule.
package route

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Router assigns waiting tasks to instances. The engine calls Route whenever tasks wait centrally at a stage and one
// arrived, an instance became free, or the ready instances changed. A rule that queues per instance assigns everything
// that has somewhere to go; a rule with a central queue leaves there what should not be assigned yet and is called
// again.
type Router interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Route assigns by v.Assign. It must not keep v.
	Route(v *View)
}

// View is what a rule may see, and the one thing it may do.
type View struct {
	Now   serving.Time
	Stage serving.StageID
	Fleet *fleet.Fleet
	Plan  *plan.Plan // nil before the first plan
	// Monitor is what has been seen of the demand.
	Monitor *monitor.Rates

	// Touched collects the instances that were given tasks, for the engine. It may hold an instance more than once.
	Touched []*fleet.Instance
}

// Waiting returns the stage's central queue.
func (v *View) Waiting() *fleet.Queue { return v.Fleet.Central(v.Stage) }

// Instances returns the stage's ready instances, ascending by ID.
func (v *View) Instances() []*fleet.Instance { return v.Fleet.Ready(v.Stage) }

// Assign moves a waiting task to the queue of a ready instance.
func (v *View) Assign(r fleet.Ref, to *fleet.Instance) {
	v.Fleet.Give(r, to, v.Now)
	if n := len(v.Touched); n == 0 || v.Touched[n-1] != to {
		v.Touched = append(v.Touched, to)
	}
}

// each calls pick for every waiting task in order and assigns it to what pick returns, where that is not nil.
func (v *View) each(pick func(r fleet.Ref, t *fleet.Task) *fleet.Instance) {
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		if to := pick(r, v.Fleet.Task(r)); to != nil {
			v.Assign(r, to)
		}
		r = next
	}
}
