// Package priced is a routing rule that decides for all machines and all stages at once. At every event it compares the
// batches that could begin now, of any stage, on any variant that is resident on a free machine. It takes the one that
// brings most for the machine's time. The rule is ours.
//
//   - Prices. A small linear program in rates says what a second of each group of alike machines is worth: it serves
//     what arrives and what waits with the time that the machines have (prices.go, solve.go).
//   - Worth. From the prices follows what a waiting query is worth by the time it has left: the best that some later
//     batch could bring for it, less the machine time that it costs. For a stage that others follow it counts their
//     accuracy and their time as well (values.go).
//   - Gain. What a batch brings is the reward of its queries, less their opportunity cost, what the variant lacks in
//     accuracy, the machine's time at its price, what others lose, and the risk to be late (gain.go). The batch with
//     the highest gain for each second of the machine, or for the root of that, runs (batches.go, mixed.go). At a
//     stage that others follow, the tasks that came last are compared as well as the oldest.
//   - Blocking. A batch cannot be taken back: where more urgent tasks would find too few machines while it runs, what
//     is lost of them counts against it, and it does not begin if that is more than it brings (blocking.go). For tasks
//     of its own stage alone no machine idles: what waits there would block them as much later.
//   - Overlap. Where few machines serve a stage, all of them are busy, and a task cannot wait, a small batch begins
//     beside what runs, if that is in time all the same. Both run slower (overlap.go).
//   - Second answers. A task whose first answer is not sure waits like any other, for what a better answer adds to the
//     accuracy of the one that there is; it is given that one while machine time is dearer (secondanswers.go).
//   - Waiting. Where even the best batch loses more than idling costs, the machine stays free until one query more
//     would make the batch late. Only batches of apps with one stage wait, whose queries differ in their deadlines
//     alone: elsewhere it does not pay.
//
// A lone query on an idle fleet has nothing to wait for: time costs nothing then, and every gain is at least 0. Under
// overload prices rise until what waits is worth nothing, and full batches on fast variants win.
package priced

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Options leave out parts of the rule, to measure what each is worth. The zero value leaves out none.
type Options struct {
	NoPrices  bool // machine time costs nothing
	NoWaiting bool // the best batch runs at once, even where it loses
	NoSeconds bool // every answer is the last
}

// Rule is a route.Router for all stages.
type Rule struct {
	Options

	built     bool
	epoch     uint64
	machines  fleetOfMachines
	stages    []stage
	apps      []app
	prices    prices
	pressure  multiplier
	accuracy  []accuracyPrice // by AppID
	least     []float64       // memory for fill
	list      []int32         // memory of stage.grow
	promise   []int32         // memory of promising
	cheapest  []int32         // memory of it
	ends      []int64         // memory of findBlockedOf
	urgent    []urgent
	lookahead lookahead
	runs      runs
	factors   []float64             // by position in stage.differing, for the way that is looked at; see stretch
	overlap   bool                  // batches of some stage may begin beside others
	underway  []underway            // on the machine that roomToOverlap has found
	others    []underway            // memory of it
	watch     func(*route.Weighing) // nil for nobody
	weighing  weighing

	collections uint64 // how often tasks of some stage were collected
	forgotten   uint64 // those collections up to this one are out of date
}

// New returns the rule.
func New(o Options) *Rule { return &Rule{Options: o} }

// Name implements route.Router.
func (*Rule) Name() string { return "priced" }

// Forget implements engine.Forgetter: where a place in the tables is used again, all stages are taken up anew.
func (r *Rule) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(r.accuracy, f.Apps, accuracyPrice{})
	for _, s := range f.Stages {
		if int(s) < len(r.stages) {
			r.built, r.stages, r.apps = false, nil, nil
			return
		}
	}
}

// Needs implements route.Router.
func (*Rule) Needs() plan.Sections { return 0 }

// Traits implements route.Router.
func (r *Rule) Traits() route.Traits {
	return route.Traits{Chooses: true, Global: true, Seconds: !r.NoSeconds}
}

// Route implements route.Router.
func (r *Rule) Route(v *route.View) {
	if !r.built || r.epoch != v.Fleet.Epoch() {
		r.build(v)
	} else {
		r.machines.follow(v)
	}
	v.ForgetFinished()
	r.settle(v)
	if r.machines.free == 0 && !r.overlap || !r.someWait(v) {
		return
	}
	if r.machines.free > 0 || r.prices.outdated {
		r.updatePrices(v)
	}
	r.forgetCandidates()
	if r.machines.free > 0 {
		r.serveFree(v)
	}
	if r.overlap {
		r.serveOverlaps(v)
	}
}

// serveFree begins batches on free machines.
func (r *Rule) serveFree(v *route.View) {
	r.serveOverdue(v)
	started, again := false, false
	for r.machines.free > 0 {
		s, g := r.best(v)
		if s == nil {
			break
		}
		c := &s.candidates[g]
		if c.score < -tolerance && r.mayWait(s) && r.machines.groups[g].pays(c, v.Now, s.rate) {
			v.CallAt(min(c.edge, v.Now.Add(longestWait)))
			return
		}
		if c.gain < -tolerance && c.blocks > 0 {
			c.n, c.passed = 0, s.collection // what comes meanwhile is worth more
			v.CallAt(v.Now.Add(longestWait))
			continue
		}
		if r.watch != nil {
			r.weigh(v, s, g)
		}
		if !r.start(v, s, g, c) {
			c.n, c.passed = 0, s.collection
			again = again || started
		} else {
			started = true
		}
	}
	if again {
		v.CallAt(v.Now.Add(1)) // the instance had been given a batch in this call
	}
	if r.machines.free > 0 {
		r.serveLate(v)
	}
}

// mayWait reports whether batches of a stage may wait for more tasks.
func (r *Rule) mayWait(s *stage) bool {
	return !r.NoWaiting && !s.mixed && r.apps[s.app].graph.Len() == 1
}

const (
	// tolerance is a loss for each second of a machine that counts as none.
	tolerance = 1e-9
	// longestWait is after how long a batch that waits is compared anew with new prices.
	longestWait = 5 * time.Millisecond
	// leastWait is a time that no batch gains by, in seconds.
	leastWait = 0.0005
)

// pays reports whether a batch that loses had better wait for the next item, if it can join: the time that the machine
// idles until then costs less than the batch loses. Items come at rate, in items/s. Where tasks differ in size nobody
// knows what one task more takes.
func (x *group) pays(c *candidate, now serving.Time, rate float64) bool {
	idle := min(c.edge.Sub(now).Seconds(), 1/max(rate, 1e-9))
	return x.scarce() && idle > 0 && -c.gain > x.price*idle
}

// build takes up which instances are ready, and what they hold.
func (r *Rule) build(v *route.View) {
	r.built, r.epoch = true, v.Fleet.Epoch()
	spec := v.Fleet.Spec()
	r.machines.build(v)
	r.buildStages(spec)
	r.findOverlaps()
	r.prices.outdated = true
}

// someWait reports whether any task waits for an instance.
func (r *Rule) someWait(v *route.View) bool {
	for s := range r.stages {
		if v.Fleet.Central(serving.StageID(s)).Len() > 0 {
			return true
		}
	}
	return false
}

// forgetCandidates makes all candidates be formed anew.
func (r *Rule) forgetCandidates() { r.forgotten = r.collections }

// hasCollected reports whether the tasks of a stage are collected.
func (r *Rule) hasCollected(x *stage) bool { return x.collection > r.forgotten }

// hasFormed reports whether a candidate of a stage is formed of the tasks that wait now.
func (r *Rule) hasFormed(x *stage, c *candidate) bool {
	return r.hasCollected(x) && c.formed == x.collection
}

// best returns the stage and the group of free machines whose candidate has the highest score; nil without any.
func (r *Rule) best(v *route.View) (best *stage, group int) {
	most := 0.0
	blocked := false
	for s := range r.stages {
		x := &r.stages[s]
		q := v.Fleet.Central(x.id)
		if q.Len() == 0 || !r.machines.freeFor(x) {
			continue
		}
		if !blocked {
			r.findBlocked(v)
			blocked = true
		}
		if !r.hasCollected(x) {
			x.collect(r, v, q)
		}
		for _, g := range r.promising(x) {
			c := &x.candidates[g]
			if c.formed != x.collection {
				x.form(r, v, int(g))
			}
			if c.n > 0 && (best == nil || c.score > most) {
				best, group, most = x, int(g), c.score
			}
		}
	}
	return best, group
}

// give assigns the tasks of a batch to an instance.
func (x *stage) give(v *route.View, b *batch, i *fleet.Instance) {
	v.Choose(i, b.option.variant)
	x.began(b)
	for _, k := range b.list {
		v.Assign(x.differing[k].ref, i)
	}
	if len(b.list) > 0 {
		return
	}
	for k := b.first; k < b.first+b.n; k++ {
		y, _ := x.at(k)
		v.Assign(y.ref, i)
	}
	if !x.mixed {
		x.row.take(b.first, b.n)
	}
}

// start gives the tasks of a candidate to the first free machine of its group. It reports whether one can begin the
// batch in this call.
func (r *Rule) start(v *route.View, s *stage, g int, c *candidate) bool {
	o := c.option
	late := r.joining(v, s, g, c)
	m := r.machines.take(g, o.position, v.Now, c.seconds(late))
	if m == nil {
		return false
	}
	i := m.instances[o.position]
	if r.watch != nil {
		r.weighing.join(late, o)
		r.began(i)
	}
	s.give(v, &c.batch, i)
	for range late {
		v.Assign(v.Fleet.Central(s.id).Head(), i)
	}
	if r.machines.free <= 1 {
		r.forgetCandidates() // what is left behind waits longer now
	} else {
		s.forget()
	}
	return true
}
