package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Deferred is the deferred batch scheduling of Symphony (arXiv 2308.07470). Queries wait centrally. Of every stage
// those that wait form a candidate batch: the b first ones, of which the most urgent has the deadline d. With l(b) for
// the time of a batch, its window is [d - l(b+1), d - l(b)]. Before it another query could still join, after it the
// batch would have to shrink. A candidate in its window takes the free machine of the lowest number, so that those of
// high numbers stay idle. Where machines are few, one that becomes free takes the candidate whose window ends first.
//
// A query whose deadline would make the batch smaller than it could be without it is passed over; so it is dropped when
// its time is over, unless the others have gone before. The batch that could be is the whole queue, up to the largest
// batch that takes half of the time the stage has. Where a machine would idle until the window of that batch for as
// long as the smaller one takes, the smaller one runs: at low loads, an app whose windows another app's batches meet
// again and again would otherwise lose every query while machines idle.
//
// The rule is for machines of one type. On others the window is that of the machine that would be taken.
type Deferred struct {
	candidates []candidate
	machines   [][]*fleet.Instance // by StageID: ready instances, the lowest worker first
	epoch      uint64
	built      bool
}

// candidate is the batch that a stage would run next.
type candidate struct {
	stage serving.StageID
	on    *fleet.Instance
	first fleet.Ref // the first query that is not passed over
	items int
	left  serving.Time // window
	right serving.Time
	alone bool // the first query has requirements of its own
}

// NewDeferred returns the rule.
func NewDeferred() *Deferred { return &Deferred{} }

// Name implements route.Router.
func (*Deferred) Name() string { return "deferred" }

// Needs implements route.Router.
func (*Deferred) Needs() plan.Sections { return plan.Limits }

// Traits implements route.Router.
func (*Deferred) Traits() route.Traits { return route.Traits{Chooses: true, Global: true} }

// Route implements route.Router. It costs time linear in the stages, in the instances of those where something waits,
// and in the queries that are passed over or assigned.
func (o *Deferred) Route(v *route.View) {
	v.ForgetFinished()
	stages := len(v.Fleet.Spec().Stages)
	if !o.built || o.epoch != v.Fleet.Epoch() || len(o.machines) != stages {
		o.order(v, stages)
	}
	o.candidates = o.candidates[:0]
	for s := range stages {
		if c, ok := o.candidate(v, serving.StageID(s)); ok {
			o.candidates = append(o.candidates, c)
		}
	}
	for {
		next := -1
		for k := range o.candidates {
			if c := &o.candidates[k]; c.left <= v.Now && (next < 0 || c.right < o.candidates[next].right) {
				next = k
			}
		}
		if next < 0 {
			break
		}
		c := &o.candidates[next]
		if route.MayStart(v.Fleet, c.on) {
			c.start(v)
		}
		// What is left of the stage, or its batch on another machine.
		if again, ok := o.candidate(v, c.stage); ok {
			o.candidates[next] = again
		} else {
			o.candidates = slices.Delete(o.candidates, next, next+1)
		}
	}
	wake := serving.Never
	for k := range o.candidates {
		wake = min(wake, o.candidates[k].left)
	}
	v.CallAt(wake)
}

// order lists the machines of every stage by their numbers.
func (o *Deferred) order(v *route.View, stages int) {
	o.epoch, o.built = v.Fleet.Epoch(), true
	for len(o.machines) < stages {
		o.machines = append(o.machines, nil)
	}
	for s := range stages {
		o.machines[s] = append(o.machines[s][:0], v.Fleet.Ready(serving.StageID(s))...)
		slices.SortStableFunc(o.machines[s], func(a, b *fleet.Instance) int {
			return cmp.Or(cmp.Compare(a.Worker(), b.Worker()), cmp.Compare(a.ID(), b.ID()))
		})
	}
}

// candidate returns the batch that a stage would run next; false where nothing waits, or no machine is free for it.
func (o *Deferred) candidate(v *route.View, s serving.StageID) (candidate, bool) {
	q := v.Fleet.Central(s)
	items := q.Items()
	passed := candidate{} // the first that is passed over; none if it has no items
	for r := q.Head(); r != fleet.Nil; r = v.Fleet.Next(r) {
		t := v.Fleet.Task(r)
		on := o.machine(v, s, t)
		if on == nil {
			items -= t.Items()
			continue
		}
		if t.Constrained() || t.Items() > on.Limit() { // another variant than the active one may have to serve it
			return candidate{stage: s, on: on, first: r, items: t.Items(), left: v.Now, right: v.Now, alone: true}, true
		}
		c := candidate{stage: s, on: on, first: r}
		last := items <= t.Items()
		if c.measure(v, t, items, last) {
			if passed.items > 0 && v.Now.Add(passed.takes(v, passed.items)) <= c.left {
				return passed, true
			}
			return c, true
		}
		if c.items > 0 && passed.items == 0 {
			passed = c
		}
		items -= t.Items()
	}
	return passed, passed.items > 0
}

// machine returns the free machine of the lowest number that serves a task in time; where none does, the lowest one
// that serves it; nil where no machine is free.
func (o *Deferred) machine(v *route.View, s serving.StageID, t *fleet.Task) (first *fleet.Instance) {
	for _, i := range o.machines[s] {
		if !route.MayStart(v.Fleet, i) || !v.Fleet.CanServe(i, t) {
			continue
		}
		if v.Now.Add(v.Fleet.Fastest(i, t)) <= t.LatestEnd() {
			return i
		}
		if first == nil {
			first = i
		}
	}
	return first
}

// measure finds the size and the window of a batch that begins with a task, of so many items that wait from it on. It
// returns false to pass the task over. The last task is never passed over.
func (c *candidate) measure(v *route.View, t *fleet.Task, waiting int, last bool) bool {
	due := t.Deadline()
	if v.Now.Add(c.takes(v, t.Items())) > due {
		due = t.LatestEnd() // later stages may have more time than they need
	}
	half := due.Sub(t.ReadyAt()) / 2
	most := min(waiting, c.on.Limit())
	goal := max(c.largest(v, half, most), t.Items())
	left := due.Sub(v.Now)
	if c.takes(v, t.Items()) > left {
		// Late in any case. It waits for its drop; if it is served all the same, then as soon as can be. A probe is:
		// were it passed over, nothing would ever correct the belief that it is late.
		app := v.Fleet.Spec().Stages[c.stage].App
		if t.DropAt() > v.Now && !t.Probe() && v.Fleet.Spec().Apps[app].Late == serving.DropLate {
			return false
		}
		c.items, c.left, c.right = goal, v.Now, v.Now
		return true
	}
	c.items = max(c.largest(v, left, most), t.Items())
	c.right = due.Add(-c.takes(v, c.items))
	if c.left = v.Now; c.items < c.on.Limit() {
		c.left = due.Add(-c.takes(v, c.items+1))
	}
	return c.items >= goal || last
}

// takes returns the believed time of a batch of so many items.
func (c *candidate) takes(v *route.View, items int) time.Duration {
	return v.Fleet.Latency(c.on.Variant(c.on.Active()).Variant, c.on.DeviceType(), items, v.Fleet.Concurrency(c.on)+1)
}

// largest returns the most items, at most most, of a batch that takes at most within; 0 for none.
func (c *candidate) largest(v *route.View, within time.Duration, most int) int {
	if most > 0 && c.takes(v, most) <= within {
		return most
	}
	low, high := 0, most // takes(low) <= within < takes(high)
	for high-low > 1 {
		if middle := (low + high) / 2; c.takes(v, middle) <= within {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// start assigns the batch.
func (c *candidate) start(v *route.View) {
	if c.alone {
		v.Choose(c.on, serving.None)
		v.Assign(c.first, c.on)
		return
	}
	v.Choose(c.on, c.on.Variant(c.on.Active()).Variant)
	left := c.items
	for r := c.first; r != fleet.Nil; {
		next, t := v.Fleet.Next(r), v.Fleet.Task(r)
		if !t.Constrained() && v.Fleet.CanServe(c.on, t) {
			if t.Items() > left {
				return
			}
			v.Assign(r, c.on)
			left -= t.Items()
		}
		r = next
	}
}
