// Package route decides which instance a waiting query goes to. One file, one rule.
package route

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Router assigns waiting tasks to instances. The engine calls Route whenever tasks wait centrally at a stage and one
// arrived, an instance became free, or the ready instances changed. A rule with a queue per instance assigns every task
// that some instance can serve. A rule with a central queue leaves tasks there and is called again.
//
// A rule that wraps another one embeds it, or implements every method: the engine decides by nothing beside this
// interface. Rules that can tell what they compare implement Watched, too.
type Router interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Traits returns what else a composition has to know of the rule. The answer never changes.
	Traits() Traits
	// Route assigns tasks by v.Assign. It must keep neither v nor what v hands out, instances apart: those it may keep
	// until fleet.View.Epoch changes.
	Route(v *View)
}

// Traits is what a composition has to know of a Router. The zero value is a rule with no special abilities.
type Traits struct {
	// Chooses is set when the rule forms batches and says by View.Choose on which variant each runs. Batchers that run
	// the chosen variant need such a rule (batch.Traits.NeedsChoice).
	Chooses bool
	// Global is set when the rule decides for all stages at once. It is then called once for everything that waits,
	// with View.Stage -1, whenever something has changed, and at the time it asked for (View.CallAt).
	Global bool
	// Seconds is set when the rule lets queries that have an answer wait for a better one (serving.Confidence). It has
	// to Settle those that are not worth that. Without it every first answer is the last.
	Seconds bool
}

// View is what a rule may read of one stage, or of all, and its actions: Assign, Choose and CallAt.
type View struct {
	Now     serving.Time
	Stage   serving.StageID // -1 for a rule with the trait Global
	Fleet   *fleet.View
	Plan    *plan.Plan    // in force, not to be changed; nil before the first
	Monitor *monitor.View // demand seen so far

	owned   *fleet.Fleet // the same fleet, for Assign and Choose
	touched []*fleet.Instance
	settled []fleet.Ref

	finished []Ended
	callAt   serving.Time
}

// Open makes the view read and change a fleet. An engine uses one view for all calls; Begin prepares it for each.
func (v *View) Open(f *fleet.Fleet, m *monitor.View) { v.Fleet, v.Monitor, v.owned = &f.View, m, f }

// Begin prepares the view for a call of Route at a stage. It empties Touched. p may be nil.
func (v *View) Begin(now serving.Time, stage serving.StageID, p *plan.Plan) {
	v.Now, v.Stage, v.Plan, v.touched, v.callAt = now, stage, p, v.touched[:0], serving.Never
	v.settled = v.settled[:0]
}

// Ended is a batch that has ended.
type Ended struct {
	Instance serving.InstanceID // may be gone
	// Took is how long it ran, 0 if it failed, and Believed how long it was taken to run.
	Took, Believed time.Duration
	Overlaps       bool // it ran beside another one for a part of its time (View.Overlap)
}

// Finish records that a batch has ended, for a rule with the trait Global.
func (v *View) Finish(b Ended) { v.finished = append(v.finished, b) }

// Finished returns the batches that have ended since the last call of ForgetFinished.
func (v *View) Finished() []Ended { return v.finished }

// ForgetFinished empties Finished.
func (v *View) ForgetFinished() { v.finished = v.finished[:0] }

// CallAt asks that Route be called at a time after Now if nothing happens before. The last call of a round counts. Only
// rules with the trait Global may ask.
func (v *View) CallAt(at serving.Time) { v.callAt = at }

// Asked returns the time that CallAt named since Begin; serving.Never without one.
func (v *View) Asked() serving.Time { return v.callAt }

// Touched returns the instances that were given tasks since Begin, in that order; one may be in it more than once. The
// slice is valid until the next Begin.
func (v *View) Touched() []*fleet.Instance { return v.touched }

// Waiting returns the stage's central queue.
func (v *View) Waiting() *fleet.Queue { return v.Fleet.Central(v.Stage) }

// Instances returns the stage's ready instances, ascending by ID. The slice must be neither changed nor kept.
func (v *View) Instances() []*fleet.Instance { return v.Fleet.Ready(v.Stage) }

// Assign moves a task from its stage's central queue to the queue of one of its ready instances, which must be able to
// serve it (fleet.View.CanServe).
func (v *View) Assign(r fleet.Ref, to *fleet.Instance) {
	v.owned.Assign(r, to, v.Now)
	if n := len(v.touched); n == 0 || v.touched[n-1] != to {
		v.touched = append(v.touched, to)
	}
}

// Settle has a task of its stage's central queue that has an answer (fleet.Task.Hint) end with that.
func (v *View) Settle(r fleet.Ref) {
	v.owned.Dequeue(r)
	v.settled = append(v.settled, r)
}

// Settled returns the tasks that were settled since Begin. The slice is valid until the next Begin.
func (v *View) Settled() []fleet.Ref { return v.settled }

// Choose sets the variant on which the tasks assigned to an instance now are to run. serving.None leaves it to the
// batcher. Only batchers with the trait NeedsChoice read it.
func (v *View) Choose(to *fleet.Instance, variant serving.VariantID) { v.owned.SetChoice(to, variant) }

// Overlap has the tasks assigned to an instance now begin beside what runs on its worker, where
// fleet.Instance.RoomToOverlap says that one batch more may. Only rules with the trait Global may ask.
func (v *View) Overlap(to *fleet.Instance) { v.owned.SetOverlap(to) }

// each calls pick for every waiting task in order and assigns it to the instance returned, unless that is nil.
func (v *View) each(pick func(r fleet.Ref, t *fleet.Task) *fleet.Instance) {
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		if to := pick(r, v.Fleet.Task(r)); to != nil {
			v.Assign(r, to)
		}
		r = next
	}
}
