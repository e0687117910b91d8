// Package batch decides when an instance runs queries from its queue, how many of them, and on which variant. One file,
// one rule.
package batch

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Batcher decides for one instance. Every instance has its own, so a rule may keep state. The engine calls Decide when
// the instance has a free slot and a query waits: after an arrival, a completion, or at the time that the rule asked
// for.
//
// A batcher that wraps another one embeds it, or implements both methods: the engine asks for nothing beside this
// interface.
type Batcher interface {
	// Decide returns what to do now. The engine calls it again at once after Run and Drop, until it waits, the queue is
	// empty or no slot is free. It must not keep v.
	Decide(v *View) Decision
	// Finished records that a batch of n queries ended well. late is set when one of them missed its deadline.
	Finished(n int, late bool)
}

// Rule makes the batchers of a system.
type Rule interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Traits returns what else a composition has to know of the rule. The answer never changes.
	Traits() Traits
	// New returns a batcher for a fresh instance.
	New() Batcher
}

// Traits is what a composition has to know of a Rule. The zero value is a rule with no special needs.
type Traits struct {
	// Unbatched is set when queries run one at a time. A backlog is then the sum of their own times.
	Unbatched bool
	// NeedsChoice is set when the rule runs the variant that the router has chosen (route.Traits.Chooses). A
	// composition with a router that chooses none is refused.
	NeedsChoice bool
	// Chooses tells that the rule chooses among the variants of an instance. All others run the active one.
	Chooses bool
}

// NoLearning is a Batcher's Finished that ignores its batches.
type NoLearning struct{}

// Finished implements Batcher.
func (NoLearning) Finished(int, bool) {}

// Action is the kind of a Decision.
type Action uint8

// The actions of a batcher.
const (
	Wait Action = iota // do nothing before Until (serving.Never: before the next arrival or completion)
	Run                // start the first N queries on Variant
	Drop               // give up the first query
)

// Decision is a batcher's answer. Fields that do not belong to its Action are zero.
type Decision struct {
	Action  Action
	N       int               // queries, for Run
	Variant serving.VariantID // for Run
	Until   serving.Time      // for Wait
	Reason  Reason
}

// Reason says why a batcher decided so. Explanations print it.
type Reason uint8

// The reasons of batchers. Journals hold their numbers: new ones go to the end.
const (
	None       Reason = iota
	Full              // the batch holds all that it may
	MustStart         // waiting longer would make its first query late
	TimedOut          // the time to fill the batch is over
	Idle              // work-conserving: a free instance runs what waits
	Filling           // the batch waits for more queries
	TooLate           // the first query can no longer be answered in time
	TooCostly         // saving the first query would make more of the others late
	FromPolicy        // the policy in force says so for this state of the queue
	Routed            // the router made up the batch
)

var reasonNames = [...]string{"", "batch full", "must go to be in time", "time to fill is over", "instance free",
	"filling the batch",
	"cannot be in time any more", "would make others late", "as the policy says", "as routed"}

// String returns the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// View is what a rule may read: one instance, and the queries at the head of its queue that can run together. A rule
// must not change what it points to, and must not keep it.
type View struct {
	Now      serving.Time
	Fleet    *fleet.View
	Plan     *plan.Plan // in force; nil before the first
	Monitor  *monitor.View
	Instance *fleet.Instance
	SLO      time.Duration // latency objective of the app
	// MayDrop is false when late queries are served.
	MayDrop bool

	// Variant is the variant that the engine would use for the first query. Limit is its batch limit in items.
	Variant serving.VariantID
	Limit   int
	// Ready is how many queries at the head of the queue have requirements that Variant meets, so that they could share
	// a batch. Items is the sum of their items. Both may exceed Limit.
	Ready, Items int
}

// Latency returns the believed time of a batch of items of Variant that starts now.
func (v *View) Latency(items int) time.Duration {
	return v.Fleet.Latency(v.Variant, v.Instance.DeviceType(), items, v.Fleet.Concurrency(v.Instance)+1)
}

// Head returns the task of the first waiting query. The pointer is valid during the call of Decide.
func (v *View) Head() *fleet.Task { return v.Fleet.Task(v.Instance.Queue().Head()) }

// Fit returns how many of the first Ready queries fit into a batch of at most limit items, and the sum of their items.
func (v *View) Fit(limit int) (n, items int) {
	return v.Fleet.Prefix(v.Instance.Queue(), v.Ready, limit)
}

// InTime returns the most items, at most cap, of a batch that starts now and is believed to end by deadline; 0 when not
// even one item does.
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

// RunFirst starts the first n queries.
func (v *View) RunFirst(n int, why Reason) Decision {
	return Decision{Action: Run, N: n, Variant: v.Variant, Reason: why}
}

// WaitUntil waits for more queries until a time.
func WaitUntil(until serving.Time) Decision {
	return Decision{Action: Wait, Until: until, Reason: Filling}
}

// Earliest returns the first deadline among the first n queries. Within a priority, queues are ordered by deadline. So
// it is the head's unless priorities differ.
func (v *View) Earliest(n int) serving.Time {
	head := v.Head()
	first := head.Deadline()
	if v.Instance.Queue().Unconstrained() && v.Instance.Queue().SingleItems() && v.Fleet.Uniform(v.Instance.Queue()) {
		return first
	}
	r := v.Instance.Queue().Head()
	for range n {
		first = min(first, v.Fleet.Task(r).Deadline())
		r = v.Fleet.Next(r)
	}
	return first
}
