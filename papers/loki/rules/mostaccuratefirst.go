package rules

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/turns"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// MostAccurateFirst routes as Loki does (HPDC 2024). The most accurate instances of a stage get queries up to what they
// carry, then the next; every second a table of shares is made anew from the items that have come. More than all carry
// is shared in proportion to what each carries. Queries follow the table one by one (see route.Weighted).
//
// Opportunistic rerouting: a query that has used up so much time that it would end after the deadline of the stage, in
// a full batch of its instance or behind what waits there, goes to the most accurate instance that has capacity left
// over and on which it ends before. Where there is none, it stays, and the batcher or the engine drops it early. The
// authors' code does not look at what waits.
//
// The authors' tables also depend on which variants a query has met on its way. Here a query has no such memory.
type MostAccurateFirst struct {
	route.ByStage[mostAccurateStage]
}

// tablePeriod is how often the table is made (the authors' configurations).
const tablePeriod = time.Second

// fillTo is the part of its capacity up to which an instance is filled: 1 over the authors' factor of over-provision.
const fillTo = 1 / 1.05

type mostAccurateStage struct {
	turns.Turns // of the ready instances, by index
	epoch       uint64
	built       bool
	since       serving.Time // of the counts
	items       int          // that have come
	rate        float64      // items/s; negative before any is known
	order       []int        // indices into the ready instances, most accurate first
	capacity    []float64    // items/s, by index
	runs        []time.Duration
	spare       []float64 // items of this period that it can take beside its share, by index
}

// NewMostAccurateFirst returns the rule.
func NewMostAccurateFirst() *MostAccurateFirst {
	return &MostAccurateFirst{route.ByStage[mostAccurateStage]{Fresh: mostAccurateStage{rate: -1}}}
}

// Name implements route.Router.
func (*MostAccurateFirst) Name() string { return "mostaccuratefirst" }

// Needs implements route.Router.
func (*MostAccurateFirst) Needs() plan.Sections { return plan.Shares | plan.Limits }

// Traits implements route.Router.
func (*MostAccurateFirst) Traits() route.Traits { return route.Traits{} }

// Route implements route.Router.
func (o *MostAccurateFirst) Route(v *route.View) {
	s := o.Of(v.Stage)
	all := v.Instances()
	switch elapsed := v.Now.Sub(s.since); {
	case !s.built || s.epoch != v.Fleet.Epoch():
		s.learn(v, all)
	case elapsed >= tablePeriod:
		s.rate = float64(s.items) / elapsed.Seconds()
		s.since, s.items = v.Now, 0
		s.fill()
	}
	if len(all) == 0 {
		return
	}
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		s.route(v, all, r)
		r = next
	}
}

func (s *mostAccurateStage) route(v *route.View, all []*fleet.Instance, r fleet.Ref) {
	t := v.Fleet.Task(r)
	at := s.Next()
	if at < 0 || !v.Fleet.CanServe(all[at], t) {
		at = s.NextOf(func(i int) bool { return v.Fleet.CanServe(all[i], t) })
	}
	if at < 0 {
		return
	}
	s.items += t.Items()
	if s.late(v, all, at, t) {
		if to := s.reroute(v, all, t); to >= 0 {
			s.spare[to] -= float64(t.Items())
			v.Assign(r, all[to])
			return
		}
	}
	s.Take(at)
	v.Assign(r, all[at])
}

// reroute returns the most accurate instance with capacity left over whose batches end before a task's deadline; -1
// without one.
func (s *mostAccurateStage) reroute(v *route.View, all []*fleet.Instance, t *fleet.Task) int {
	for _, at := range s.order {
		if s.spare[at] >= float64(t.Items()) && v.Fleet.CanServe(all[at], t) && !s.late(v, all, at, t) {
			return at
		}
	}
	return -1
}

// late reports whether a task is believed to end after its deadline on an instance.
func (s *mostAccurateStage) late(v *route.View, all []*fleet.Instance, at int, t *fleet.Task) bool {
	return v.Now.Add(max(s.runs[at], v.Fleet.Backlog(all[at], v.Now, t.Items()))) > t.Deadline()
}

// learn takes in the ready instances. Before a rate is known, the plan's shares hold.
func (s *mostAccurateStage) learn(v *route.View, all []*fleet.Instance) {
	s.epoch, s.built = v.Fleet.Epoch(), true
	s.Begin(len(all), func(at int) float64 { return all[at].Share() })
	if s.rate < 0 {
		s.since = v.Now
	}
	spec := v.Fleet.Spec()
	s.order, s.capacity, s.runs, s.spare = s.order[:0], s.capacity[:0], s.runs[:0], s.spare[:0]
	accuracy := make([]float64, len(all))
	for at, i := range all {
		s.order, s.spare = append(s.order, at), append(s.spare, 0)
		run, carries := time.Duration(0), 0.0
		if k := i.Active(); k >= 0 {
			l := i.Variant(k)
			accuracy[at] = spec.Variants[l.Variant].Accuracy
			run = v.Fleet.Latency(l.Variant, i.DeviceType(), l.Limit, i.Slots())
			carries = float64(l.Limit*i.Slots()) / max(run, 1).Seconds()
		}
		s.runs, s.capacity = append(s.runs, run), append(s.capacity, carries)
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		switch {
		case accuracy[a] != accuracy[b]:
			if accuracy[a] > accuracy[b] {
				return -1
			}
			return 1
		case s.runs[a] != s.runs[b]:
			return int(s.runs[a] - s.runs[b])
		}
		return a - b
	})
	if s.rate >= 0 {
		s.fill()
	}
}

// fill makes the table: shares by what each instance is filled with, and what is left over.
func (s *mostAccurateStage) fill() {
	total := 0.0
	for _, c := range s.capacity {
		total += c * fillTo
	}
	if s.rate <= 0 || total <= 0 {
		return // nothing comes: the table before is as good
	}
	left := s.rate
	for _, at := range s.order {
		carries := s.capacity[at] * fillTo
		sent := carries * s.rate / total
		if s.rate <= total {
			sent = min(carries, left)
		}
		left -= sent
		s.Share[at] = sent / s.rate
		s.spare[at] = max(carries-sent, 0) * tablePeriod.Seconds()
		s.Owed[at] = 0
	}
	s.Reset()
}
