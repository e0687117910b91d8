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
//
// A rule that wraps another one embeds it, or answers every method itself: nothing is asked for beside the port.
type Router interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Traits says what else a composition has to know of the rule. The answer never changes.
	Traits() Traits
	// Route assigns by v.Assign. It must keep neither v nor what v hands out.
	Route(v *View)
}

// Traits is what a composition has to know of a Router.
type Traits struct {
	// Chooses tells that the rule makes up batches and says by View.Choose on which variant each is to run. Batchers
	// that run what was chosen need such a rule (batch.Traits.NeedsChoice).
	Chooses bool
}

// View is what a rule may see of one stage, and the two things that it may do: Assign and Choose.
type View struct {
	Now     serving.Time
	Stage   serving.StageID
	Fleet   *fleet.View
	Plan    *plan.Plan    // in force, not to be changed; nil before the first
	Monitor *monitor.View // what has been seen of the demand

	owned   *fleet.Fleet // Fleet, for what the rule may do to it
	touched []*fleet.Instance
}

// Open has the view show a fleet, and lets a rule act on it. An engine uses one view for all calls; Begin prepares it
// for each.
func (v *View) Open(f *fleet.Fleet, m *monitor.View) { v.Fleet, v.Monitor, v.owned = &f.View, m, f }

// Begin prepares the view for a call of Route at a stage. What Touched returned before is gone.
func (v *View) Begin(now serving.Time, stage serving.StageID, p *plan.Plan) {
	v.Now, v.Stage, v.Plan, v.touched = now, stage, p, v.touched[:0]
}

// Touched returns the instances that were given tasks since Begin, in that order; one may be in it more than once. The
// slice is valid until the next Begin.
func (v *View) Touched() []*fleet.Instance { return v.touched }

// Waiting returns the stage's central queue.
func (v *View) Waiting() *fleet.Queue { return v.Fleet.Central(v.Stage) }

// Instances returns the stage's ready instances, ascending by ID. The slice must be neither changed nor kept.
func (v *View) Instances() []*fleet.Instance { return v.Fleet.Ready(v.Stage) }

// Assign moves a task from the stage's central queue to the queue of one of its ready instances, which must be able to
// serve it (fleet.View.CanServe).
func (v *View) Assign(r fleet.Ref, to *fleet.Instance) {
	v.owned.Assign(r, to, v.Now)
	if n := len(v.touched); n == 0 || v.touched[n-1] != to {
		v.touched = append(v.touched, to)
	}
}

// Choose says on which variant the tasks that the rule assigns to an instance now are to run; serving.None leaves it to
// the batcher. Only batchers with the trait NeedsChoice ask.
func (v *View) Choose(to *fleet.Instance, variant serving.VariantID) { v.owned.SetChoice(to, variant) }

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
