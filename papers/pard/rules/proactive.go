package rules

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Proactive is PARD's dropping and order of queries (EuroSys 2026, arXiv 2602.08747). A stage has one queue, ordered by
// the time that queries have left until the end of the pipeline. A free instance takes a full batch of it, or all that
// wait. A query is left out when the time that has passed (the stages before), the batch that would run (this stage)
// and what the stages behind are believed to take together exceed its objective. Of the stages behind count their
// batches, what waits there beyond the batches that run next, and the waits for batches to end, of which a sum is taken
// that is exceeded in 0.9 of all cases (the paper's lambda is 0.1).
//
// While a stage carries what comes, those with the least time left go first; while more comes than it carries, those
// with the most: a queue that only grows would else be served at its hopeless end. The order changes when the load, in
// parts of what the stage carries, is above 1 or below by more than it scatters.
//
// A query that is left out stays in the queue, so that it runs after all where the stages behind have become faster.
// Else the engine drops it when even an empty pipeline would be too slow. Apps that serve late leave nobody out. The
// order is within a priority.
type Proactive struct{ route.ByStage[proactiveStage] }

// loadPeriod is how often the load is measured, loadMemory over how many periods it is smoothed. Both are ours.
const (
	loadPeriod = time.Second
	loadMemory = 5
)

type proactiveStage struct {
	seen     uint64       // tasks that had come when the period began
	since    serving.Time // when it began
	load     float64      // items/s, smoothed
	scatter  float64      // mean distance of a period's load from it, items/s
	known    bool         // load is
	mostLeft bool         // those with the most time left go first
}

// NewProactive returns the rule.
func NewProactive() *Proactive { return &Proactive{} }

// Name implements route.Router.
func (*Proactive) Name() string { return "proactive" }

// Needs implements route.Router.
func (*Proactive) Needs() plan.Sections { return plan.Limits }

// Traits implements route.Router.
func (*Proactive) Traits() route.Traits { return route.Traits{Chooses: true} }

// Route implements route.Router. It costs time linear in the instances of the stage and of those behind it, and in the
// queries that are assigned or left out.
func (o *Proactive) Route(v *route.View) {
	s := o.Of(v.Stage)
	s.watch(v)
	var ahead time.Duration
	known := false
	for _, i := range v.Instances() {
		if v.Waiting().Len() == 0 {
			return
		}
		if !route.MayStart(v.Fleet, i) {
			continue
		}
		if !known {
			w := after(v, v.Stage)
			ahead, known = w.within(), true
		}
		b := filling{View: v, on: i, ahead: ahead}
		b.fill(s.mostLeft)
	}
}

// watch measures the load and chooses the order.
func (s *proactiveStage) watch(v *route.View) {
	q := v.Waiting()
	left, _ := q.Left()
	come := left + uint64(q.Len())
	passed := v.Now.Sub(s.since)
	if passed < loadPeriod || q.Len() == 0 {
		return
	}
	load := float64(come-s.seen) * float64(q.Items()) / float64(q.Len()) / passed.Seconds()
	s.seen, s.since = come, v.Now
	if !s.known {
		s.load, s.known = load, true
	}
	// A period without a call is as long as several.
	keep := math.Pow(1-1.0/loadMemory, passed.Seconds()/loadPeriod.Seconds())
	s.scatter = keep*s.scatter + (1-keep)*math.Abs(load-s.load)
	s.load = keep*s.load + (1-keep)*load
	carries := paceOf(v, v.Stage).rate
	switch {
	case s.load-s.scatter > carries:
		s.mostLeft = true
	case s.load+s.scatter < carries:
		s.mostLeft = false
	}
}

// filling is a free instance that gets a batch.
type filling struct {
	*route.View
	on    *fleet.Instance
	ahead time.Duration // what the stages behind are believed to take
	room  int           // items that the batch still has room for
	began bool
}

// fill gives the instance a batch of queries that are believed to be in time.
func (b *filling) fill(mostLeft bool) {
	first, items := b.first()
	if first == fleet.Nil {
		return
	}
	if t := b.Fleet.Task(first); b.alone(t) {
		b.Choose(b.on, serving.None)
		b.Assign(first, b.on)
		return
	}
	b.room = min(items, b.on.Limit())
	takes := b.takes(b.room)
	for r := first; r != fleet.Nil; {
		last := r
		if mostLeft {
			last = b.lastOfPriority(r)
		}
		next := b.Fleet.Next(last)
		for at := last; at != fleet.Nil; {
			before := b.Fleet.Previous(at)
			if !b.take(at, takes) {
				return
			}
			if at == r {
				break
			}
			at = before
		}
		r = next
	}
}

// first returns the first query that is in time in a batch of those from it on, and the sum of their items; fleet.Nil
// without one. Queries before it that others could serve are left out, or wait for another instance.
func (b *filling) first() (fleet.Ref, int) {
	items := b.Waiting().Items()
	for r := b.Waiting().Head(); r != fleet.Nil; r = b.Fleet.Next(r) {
		t := b.Fleet.Task(r)
		if b.Fleet.CanServe(b.on, t) && b.inTime(t, b.takes(max(min(items, b.on.Limit()), t.Items()))) {
			return r, items
		}
		items -= t.Items()
	}
	return fleet.Nil, 0
}

// take assigns a query unless it is left out. It returns false when the batch is full.
func (b *filling) take(r fleet.Ref, takes time.Duration) bool {
	t := b.Fleet.Task(r)
	switch {
	case b.alone(t) || !b.Fleet.CanServe(b.on, t) || !b.inTime(t, takes):
		return true
	case t.Items() > b.room:
		return false
	}
	if !b.began {
		b.began = true
		b.Choose(b.on, b.on.Variant(b.on.Active()).Variant)
	}
	b.Assign(r, b.on)
	b.room -= t.Items()
	return b.room > 0
}

// inTime reports whether a query in a batch that takes so long is believed to be in time at the end of the pipeline. A
// probe counts as such: nothing else corrects the belief that it is late.
func (b *filling) inTime(t *fleet.Task, takes time.Duration) bool {
	if takes >= profile.Unknown || t.Probe() || t.ColdUntil() > b.Now || b.Now.Add(takes+b.ahead) <= t.Due() {
		return true
	}
	spec := b.Fleet.Spec()
	return spec.Apps[spec.Stages[b.Stage].App].ServesLate(t.Work().Own)
}

// alone reports whether a query has requirements for which another variant than the active one may be needed.
func (b *filling) alone(t *fleet.Task) bool { return t.Constrained() || t.Items() > b.on.Limit() }

// takes returns the believed time of a batch of so many items.
func (b *filling) takes(items int) time.Duration {
	if b.on.Active() < 0 {
		return profile.Unknown
	}
	return b.Fleet.Latency(b.on.Variant(b.on.Active()).Variant, b.on.DeviceType(), items,
		b.Fleet.Concurrency(b.on)+1)
}

// lastOfPriority returns the last query of the priority of r.
func (b *filling) lastOfPriority(r fleet.Ref) fleet.Ref {
	rank := b.Fleet.Task(r).Rank()
	if last := b.Waiting().Tail(); b.Fleet.Task(last).Rank() == rank {
		return last
	}
	for {
		next := b.Fleet.Next(r)
		if next == fleet.Nil || b.Fleet.Task(next).Rank() != rank {
			return r
		}
		r = next
	}
}
