package route

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Schedule keeps queries in a central queue and schedules them anew at every event: which instance runs which of them
// and in what order, busy instances too, so that as many as can be are in time. What comes first on a free instance
// begins; the rest stays in the queue. It is ours and grew out of Matching, which gives an instance one query at a time
// and does not see those behind it.
//
//   - Queries are placed by priority, then by how long they can still wait where they can wait longest, the least
//     first: those that have no choice choose first. On an instance they run in the order of the queue: by deadline,
//     which meets all deadlines if any order does.
//   - A query goes where the time that it takes, and half of the time that it waits, is worth least. Worth is the
//     plan's (Plan.MarginalRates) where it has that: dual prices know the sizes that come and how many instances there
//     are. Otherwise it is Kairos's C_j.
//   - A query keeps the margin of Kairos's xi to its deadline where it can, and goes without where it would be left
//     out: one that may be late is better than one that is.
//   - Where a query fits nowhere, another one is moved to make room. Where none can be moved, the query that takes most
//     is left out: percentiles count queries and not their time, so one large query gives its place to several small
//     ones.
//   - A query that can be in time nowhere any more has nothing to lose. It is served when no other waits and half of
//     the instances are idle, or, once it is very late, when no other waits.
//
// Only so many queries for each instance take part, in the order of the queue.
type Schedule struct{ stages []scheduleStage }

// NewSchedule returns the rule.
func NewSchedule() *Schedule { return &Schedule{} }

// Name implements Router.
func (*Schedule) Name() string { return "schedule" }

// Needs implements Router.
func (*Schedule) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (*Schedule) Traits() Traits { return Traits{} }

const (
	// ahead is how many queries take part for each seat, and atLeast in all.
	ahead, atLeast = 4, 16
	// searches is for how many queries room is made at an event: it looks at all pairs of queries and instances.
	searches = 8
	// waiting is what the time until a query begins counts, relative to the time it takes: it holds no instance, but
	// what waits longer is later if anything goes wrong. Measured: 0.5 is up to 0.8 % better than 1, and 0.25 alike.
	waiting = 0.5
	// forbearance is after how many objectives a late query no longer waits for instances to be idle.
	forbearance = 100
	// unplaced is the place of a query that is not in the schedule, and what follows the last query on a seat.
	unplaced = -1
)

type scheduleStage struct {
	epoch     uint64
	built     bool
	kinds     []matchingKind
	largest   int // query, in items, that all instances serve
	instances []*fleet.Instance
	kind      []int32
	seats     []seat
	queries   []placed  // in the order of the queue
	took      []float64 // of the queries, in ns
	order     []int32   // in which they are placed
	margin    float64   // ns that queries keep to their deadlines where they can
	hopeful   int       // queries that can be in time and have not begun
}

// seat is room for one query at a time: a free slot of an instance, or one that is busy.
type seat struct {
	instance, kind int32
	free           bool
	wait           float64 // ns until it begins what it is given
	weight         float64
	first          int32 // query
}

// placed is a query that can be in time and its place in the schedule.
type placed struct {
	ref     fleet.Ref
	left    float64 // ns to its deadline
	slack   float64 // how long it can wait, in ns, on the seat where that is longest
	least   float64 // the worth of the time that it takes, where that is least
	rank    int32
	at      int32 // in took: from there by kind, or by instance if it is special
	special bool
	seat    int32
	next    int32 // query on the same seat
}

// Route implements Router.
func (o *Schedule) Route(v *View) {
	for len(o.stages) <= int(v.Stage) {
		o.stages = append(o.stages, scheduleStage{})
	}
	s := &o.stages[v.Stage]
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v)
	}
	if v.Waiting().Len() == 0 || !s.look(v) {
		return
	}
	s.read(v)
	s.place()
	s.begin(v)
	if s.hopeful == 0 {
		s.serveLate(v)
	}
}

func (s *scheduleStage) build(v *View) {
	s.epoch, s.built, s.largest = v.Fleet.Epoch(), true, largest(v)
	s.kinds, s.instances, s.kind = s.kinds[:0], s.instances[:0], s.kind[:0]
	for _, i := range v.Instances() {
		if i.Active() < 0 {
			continue
		}
		var at int
		s.kinds, at = kindOf(s.kinds, i)
		s.instances, s.kind = append(s.instances, i), append(s.kind, int32(at))
	}
}

// look finds the seats and tells whether one is free.
func (s *scheduleStage) look(v *View) bool {
	s.seats = s.seats[:0]
	some := false
	for _, i := range s.instances {
		some = some || open(i)
	}
	if !some {
		return false
	}
	weigh(v, s.kinds, s.largest)
	s.price(v)
	for j, i := range s.instances {
		x := seat{instance: int32(j), kind: s.kind[j], weight: s.kinds[s.kind[j]].weight, first: unplaced}
		if open(i) {
			x.free = true
			for range i.FreeSlots() - i.Queue().Len() {
				s.seats = append(s.seats, x)
			}
			continue
		}
		x.wait = float64(v.Fleet.Backlog(i, v.Now, 0))
		s.seats = append(s.seats, x)
	}
	return true
}

// price weighs by the plan's worths, where it has them and some instance is worth anything.
func (s *scheduleStage) price(v *View) {
	if v.Plan == nil || int(v.Stage) >= len(v.Plan.MarginalRates) || v.Plan.MarginalRates[v.Stage] == nil {
		return
	}
	worth, most := v.Plan.MarginalRates[v.Stage], 0.0
	for k := range s.kinds {
		most = max(most, worth[s.kinds[k].device])
	}
	if most == 0 {
		return
	}
	for k := range s.kinds {
		s.kinds[k].weight = worth[s.kinds[k].device] / most
	}
}

// read collects the queries that take part and that can be in time on some seat.
func (s *scheduleStage) read(v *View) {
	s.queries, s.took, s.hopeful = s.queries[:0], s.took[:0], 0
	s.margin = (1 - xi) * float64(v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[v.Stage].App].SLO.Latency)
	for r := v.Waiting().Head(); r != fleet.Nil; r = v.Fleet.Next(r) {
		t := v.Fleet.Task(r)
		x := placed{
			ref: r, rank: t.Rank(), left: float64(t.Deadline().Sub(v.Now)), at: int32(len(s.took)), seat: unplaced,
			next: unplaced, slack: -1, least: math.Inf(1),
		}
		if x.left <= 0 {
			continue
		}
		if x.special = t.Special() || t.Items() > s.largest; x.special {
			for _, i := range s.instances {
				s.took = append(s.took, float64(believed(v.Fleet, i, t)))
			}
		} else {
			for k := range s.kinds {
				y := &s.kinds[k]
				s.took = append(s.took, float64(v.Fleet.Latency(y.variant, y.device, t.Items(), y.slots)))
			}
		}
		for j := range s.seats {
			y := &s.seats[j]
			if slack := x.left - y.wait - s.takes(&x, y); slack >= 0 {
				x.slack = max(x.slack, slack)
				x.least = min(x.least, y.weight*s.takes(&x, y))
			}
		}
		if x.slack < 0 {
			s.took = s.took[:x.at]
			continue
		}
		s.hopeful++
		s.queries = append(s.queries, x)
		if len(s.queries) == max(ahead*len(s.seats), atLeast) {
			return
		}
	}
}

// takes is how long a query takes on a seat.
func (s *scheduleStage) takes(q *placed, x *seat) float64 {
	if q.special {
		return s.took[q.at+x.instance]
	}
	return s.took[q.at+x.kind]
}

// place makes the schedule. A query that is left out stays in the queue and is looked at again at the next event.
func (s *scheduleStage) place() {
	s.order = s.order[:0]
	for q := range s.queries {
		s.order = append(s.order, int32(q))
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		x, y := &s.queries[a], &s.queries[b]
		return cmp.Or(int(x.rank-y.rank), cmp.Compare(x.slack, y.slack), int(a-b))
	})
	tries := searches
	for _, q := range s.order {
		if j, end := s.cheapest(q, unplaced, s.margin); j != unplaced {
			if x := &s.queries[q]; end <= x.left-s.margin {
				x.left -= s.margin // from here on it keeps that
			}
			s.put(q, j)
			continue
		}
		if tries > 0 {
			tries--
			if !s.move(q) {
				s.sacrifice(q)
			}
		}
	}
}

// cheapest is the seat, besides one, where the time that q takes and waits is worth least, of those where every query
// stays in time, and when q ends there. Seats where it keeps a margin come before those where it does not.
func (s *scheduleStage) cheapest(q, besides int32, margin float64) (best int32, soonest float64) {
	best, soonest = unplaced, math.Inf(1)
	safe, least := s.queries[q].left-margin, math.Inf(1)
	var seen uint64 // kinds of which a seat was looked at that has nothing to do: others like it are no better
	for j := range s.seats {
		x := &s.seats[j]
		if int32(j) == besides {
			continue
		}
		if x.free && x.first == unplaced && !s.queries[q].special && x.kind < 64 {
			if seen&(1<<x.kind) != 0 {
				continue
			}
			seen |= 1 << x.kind
		}
		end, ok := s.fits(q, int32(j), unplaced)
		if !ok || end > safe && soonest <= safe {
			continue
		}
		if c := s.cost(q, int32(j), end); c < least || c == least && end < soonest || end <= safe && soonest > safe {
			best, least, soonest = int32(j), c, end
		}
	}
	return best, soonest
}

// cost is what q costs on a seat where it ends then.
func (s *scheduleStage) cost(q, j int32, end float64) float64 {
	x := &s.seats[j]
	takes := s.takes(&s.queries[q], x)
	return x.weight * (takes + waiting*(end-takes))
}

// fits tells when q would end on a seat without one of the queries there, and whether every query would be in time.
func (s *scheduleStage) fits(q, j, without int32) (end float64, ok bool) {
	x := &s.seats[j]
	at, in := x.wait, false
	for e := x.first; e != unplaced; e = s.queries[e].next {
		if e == without {
			continue
		}
		if !in && e > q {
			at += s.takes(&s.queries[q], x)
			if in, end = true, at; at > s.queries[q].left {
				return 0, false
			}
		}
		if at += s.takes(&s.queries[e], x); at > s.queries[e].left {
			return 0, false
		}
	}
	if !in {
		end = at + s.takes(&s.queries[q], x)
	}
	return end, end <= s.queries[q].left
}

// put places q on a seat, in the order of the queue.
func (s *scheduleStage) put(q, j int32) {
	at := &s.seats[j].first
	for *at != unplaced && *at < q {
		at = &s.queries[*at].next
	}
	s.queries[q].next, s.queries[q].seat = *at, j
	*at = q
}

// take removes q from its seat.
func (s *scheduleStage) take(q int32) {
	at := &s.seats[s.queries[q].seat].first
	for *at != q {
		at = &s.queries[*at].next
	}
	*at = s.queries[q].next
	s.queries[q].next, s.queries[q].seat = unplaced, unplaced
}

// move places q on a seat from which another query moves to a third, as cheaply as can be.
func (s *scheduleStage) move(q int32) bool {
	moves, to, least := int32(unplaced), int32(unplaced), math.Inf(1)
	for e := range s.queries {
		e := int32(e)
		from := s.queries[e].seat
		if from == unplaced {
			continue
		}
		if _, ok := s.fits(q, from, e); !ok {
			continue
		}
		j, end := s.cheapest(e, from, 0)
		if j == unplaced {
			continue
		}
		x := &s.seats[from]
		if c := s.cost(e, j, end) + x.weight*(s.takes(&s.queries[q], x)-s.takes(&s.queries[e], x)); c < least {
			moves, to, least = e, j, c
		}
	}
	if moves == unplaced {
		return false
	}
	from := s.queries[moves].seat
	s.take(moves)
	s.put(moves, to)
	s.put(q, from)
	return true
}

// sacrifice places q where it fits without a query that takes more and has no priority over it, of those the one that
// takes most.
func (s *scheduleStage) sacrifice(q int32) {
	out, most := int32(unplaced), s.queries[q].least
	for e := range s.queries {
		x := &s.queries[e]
		if x.seat == unplaced || x.rank < s.queries[q].rank || x.least <= most {
			continue
		}
		if _, ok := s.fits(q, x.seat, int32(e)); ok {
			out, most = int32(e), x.least
		}
	}
	if out != unplaced {
		j := s.queries[out].seat
		s.take(out)
		s.put(q, j)
	}
}

// begin assigns what comes first on the free seats.
func (s *scheduleStage) begin(v *View) {
	for j := range s.seats {
		if x := &s.seats[j]; x.free && x.first != unplaced {
			x.free = false
			s.hopeful--
			v.Assign(s.queries[x.first].ref, s.instances[x.instance])
		}
	}
}

// serveLate gives queries that can be in time nowhere to seats that are still free, each to where it costs least.
func (s *scheduleStage) serveLate(v *View) {
	free := 0
	for j := range s.seats {
		if s.seats[j].free {
			free++
		}
	}
	slo := v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[v.Stage].App].SLO.Latency
	for r := v.Waiting().Head(); r != fleet.Nil && free > 0; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		if 2*free >= len(s.seats) || v.Now.Sub(t.Deadline()) > forbearance*slo {
			best, least := unplaced, math.Inf(1)
			for j := range s.seats {
				x := &s.seats[j]
				i := s.instances[x.instance]
				if !x.free || !v.Fleet.CanServe(i, t) {
					continue
				}
				if c := x.weight * float64(believed(v.Fleet, i, t)); c < least {
					best, least = j, c
				}
			}
			if best != unplaced {
				s.seats[best].free = false
				free--
				v.Assign(r, s.instances[s.seats[best].instance])
			}
		}
		r = next
	}
}
