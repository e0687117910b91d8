// Package batch decides when an instance runs what waits in its queue, how much of it, and on which variant. One file,
// one rule.
package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Batcher decides for one instance; every instance has its own, so a rule may keep state. The engine calls Decide when
// the instance has a free slot and a query waits: after an arrival, a completion, or the time the rule asked for.
//
// A batcher that wraps another one embeds it, or answers both methods itself: nothing is asked for beside the port.
type Batcher interface {
	// Decide answers what to do now. It is called again at once after Run and Drop, until it waits, nothing is left or
	// no slot is free. It must not keep v.
	Decide(v *View) Decision
	// Finished tells that a batch of n queries ended well; late when any of them missed its deadline. A rule that does
	// not learn from its batches leaves it.
	Finished(n int, late bool)
}

// Rule makes the batchers of a system.
type Rule interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Traits says what else a composition has to know of the rule. The answer never changes.
	Traits() Traits
	// New returns a batcher for a fresh instance.
	New() Batcher
}

// Traits is what a composition has to know of a Rule.
type Traits struct {
	// Unbatched tells that queries run one at a time: a backlog is then the sum of their own times.
	Unbatched bool
	// NeedsChoice tells that the rule runs the variant that the router has chosen (route.Traits.Chooses). A
	// composition with a router that chooses none is refused.
	NeedsChoice bool
	// Chooses tells that the rule chooses among the variants of an instance. All others run the active one.
	Chooses bool
}

// unlearned is the part of a Batcher that learns nothing from its batches.
type unlearned struct{}

// Finished implements Batcher.
func (unlearned) Finished(int, bool) {}

// Action is what a batcher wants.
type Action uint8

// The answers of a batcher.
const (
	Wait Action = iota // do nothing before Until (serving.Never: before the next arrival or completion)
	Run                // start the first N queries on Variant
	Drop               // give up the first query
)

// Decision is a batcher's answer.
type Decision struct {
	Action  Action
	N       int               // queries, for Run
	Variant serving.VariantID // for Run
	Until   serving.Time      // for Wait
	Reason  Reason
}

// Reason says why, for explanations.
type Reason uint8

// The reasons batchers give.
const (
	None      Reason = iota
	Full             // the batch holds all it may
	MustGo           // waiting longer would make its first query late
	TimedOut         // the time to fill it is over
	Idle             // work-conserving: the instance is free, so it runs what there is
	Filling          // waits for more queries
	Hopeless         // the first query can no longer be answered in time
	TooCostly        // saving the first query would make more of the others late
	Tabled           // what the policy in force has for this state of the queue
	Routed           // the router made up the batch
)

var reasonNames = [...]string{"", "batch full", "must go to be in time", "time to fill is over", "instance free",
	"filling the batch",
	"cannot be in time any more", "would make others late", "as the policy says", "as routed"}

// String returns the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// View is what a rule may see: one instance, and the queries at the head of its queue that can run together.
type View struct {
	Now      serving.Time
	Fleet    *fleet.View
	Plan     *plan.Plan // in force
	Monitor  *monitor.View
	Instance *fleet.Instance
	SLO      time.Duration
	// MayDrop is false when late queries are to be served.
	MayDrop bool

	// Variant is what the engine would use for the first query; Limit its batch limit in items.
	Variant serving.VariantID
	Limit   int
	// Ready is how many queries at the head of the queue Variant may serve in one batch as far as their own
	// requirements go, Items the items of all of them; both may exceed what Limit allows.
	Ready, Items int
}

// Latency returns the believed time of a batch of items of the view's variant were it started now.
func (v *View) Latency(items int) time.Duration {
	return v.Fleet.Latency(v.Variant, v.Instance.DeviceType(), items, v.Fleet.Concurrency(v.Instance)+1)
}

// Head returns the first waiting query's task.
func (v *View) Head() *fleet.Task { return v.Fleet.Task(v.Instance.Queue().Head()) }

// Fit returns how many of the first Ready queries make up a batch of at most limit items, and their items.
func (v *View) Fit(limit int) (n, items int) {
	return v.Fleet.Prefix(v.Instance.Queue(), v.Ready, limit)
}

// InTime returns the largest limit in items, at most cap, of a batch that started now would end by deadline; 0 when not
// even one item would.
func (v *View) InTime(deadline serving.Time, cap int) int {
	left := deadline.Sub(v.Now)
	lo, hi := 0, cap // latency(lo) <= left < latency(hi+1)
	if cap > 0 && v.Latency(cap) <= left {
		return cap
	}
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if v.Latency(mid) <= left {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// run starts the first n queries.
func (v *View) run(n int, why Reason) Decision {
	return Decision{Action: Run, N: n, Variant: v.Variant, Reason: why}
}

func wait(until serving.Time) Decision { return Decision{Action: Wait, Until: until, Reason: Filling} }

// earliest returns the first deadline among the first n queries. Queues are ordered by deadline within a priority, so
// it is the head's unless priorities differ.
func (v *View) earliest(n int) serving.Time {
	head := v.Head()
	first := head.Deadline()
	if v.Instance.Queue().Plain() && v.Instance.Queue().Unit() && v.Fleet.Uniform(v.Instance.Queue()) {
		return first
	}
	r := v.Instance.Queue().Head()
	for range n {
		first = min(first, v.Fleet.Task(r).Deadline())
		r = v.Fleet.Next(r)
	}
	return first
}
