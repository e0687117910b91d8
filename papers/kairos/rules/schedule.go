package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Schedule keeps queries in a central queue and schedules them anew at every event: it decides which instance runs
// which of them in what order, busy instances too, so that as many as possible are in time. The first query on a free
// instance begins; the others stay in the queue. The rule is ours. It grew out of Matching, which gives an instance one
// query at a time and does not see the queries behind it.
//
//   - Queries are placed by priority, then by slack on the seat where that is longest, least slack first. On an
//     instance they run in the order of the queue, by deadline, which meets all deadlines if any order does.
//   - A query goes where its latency and half of its wait cost least. The cost of time is the plan's
//     (Plan.MarginalRates) where the plan has it: dual prices know the sizes that come and how many instances there
//     are. Otherwise it is Kairos's C_j.
//   - A query keeps the margin of Kairos's xi to its deadline where it can. It gives the margin up where it would
//     be left out otherwise.
//   - Where a query fits nowhere, another one is moved to make room. Where none can be moved, the query with the
//     largest cost is left out: percentiles count queries and not their time, so one large query yields to several
//     small ones.
//   - A query that can no longer be in time anywhere is served when no other waits and half of the instances are
//     idle, or, once it is very late, when no other waits.
//
// Only a number of queries per instance takes part, in the order of the queue.
type Schedule struct{ route.ByStage[scheduleStage] }

// NewSchedule returns the rule.
func NewSchedule() *Schedule { return &Schedule{} }

// Name implements route.Router.
func (*Schedule) Name() string { return "schedule" }

// Needs implements route.Router.
func (*Schedule) Needs() plan.Sections { return 0 }

// Traits implements route.Router.
func (*Schedule) Traits() route.Traits { return route.Traits{} }

const (
	// queriesPerSeat and minQueries bound the queries that take part: so many for each seat, and so many in all.
	queriesPerSeat, minQueries = 4, 16
	// maxSearches is for how many queries an event makes room. Each search looks at all pairs of queries and instances.
	maxSearches = 8
	// waitWeight is the cost of waiting time relative to run time. Waiting holds no instance, but raises the risk of
	// being late. Measured: 0.5 is up to 0.8 % better than 1, and as good as 0.25.
	waitWeight = 0.5
	// veryLate is after how many objectives a late query no longer waits for instances to be idle.
	veryLate = 100
	// unplaced is the seat of a query that is not in the schedule, and the query after the last one on a seat.
	unplaced = -1
)

type scheduleStage struct {
	epoch     uint64
	built     bool
	kinds     []instanceKind
	largest   int // items of the largest query that all instances serve
	instances []*fleet.Instance
	kind      []int32
	pinned    pinnedOnly
	seats     []seat
	queries   []placed  // in the order of the queue
	latencies []float64 // of the queries, in ns: by kind, or by instance for special ones
	order     []int32   // indices of queries in the order in which they are placed
	margin    float64   // ns before their deadlines at which queries should end
	pending   int       // queries that can be in time and were not assigned
}

// seat is room for one query at a time: a free slot of an instance, or one that is busy.
type seat struct {
	instance, kind int32
	free           bool
	wait           float64 // ns until it would begin a new query
	weight         float64
	first          int32 // index of its first query
}

// placed is a query that can be in time and its place in the schedule.
type placed struct {
	ref     fleet.Ref
	left    float64 // ns to its deadline
	slack   float64 // ns that it can wait, on the seat where that is longest
	least   float64 // weighed latency, on the seat where that is least
	rank    int32
	at      int32 // index into latencies of its first
	special bool
	seat    int32
	next    int32 // index of the next query on the same seat
}

// Route implements route.Router.
func (o *Schedule) Route(v *route.View) {
	s := o.Of(v.Stage)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v)
	}
	s.pinned.serve(v)
	if v.Waiting().Len() == 0 || !s.findSeats(v) {
		return
	}
	s.collect(v)
	s.placeAll()
	s.assignFirst(v)
	if s.pending == 0 {
		s.serveLate(v)
	}
}

func (s *scheduleStage) build(v *route.View) {
	s.epoch, s.built, s.largest = v.Fleet.Epoch(), true, route.Largest(v)
	s.kinds, s.instances, s.kind, s.pinned = s.kinds[:0], s.instances[:0], s.kind[:0], s.pinned[:0]
	for _, i := range v.Instances() {
		if i.Active() < 0 {
			s.pinned = append(s.pinned, i)
			continue
		}
		var at int
		s.kinds, at = kindOf(s.kinds, i)
		s.instances, s.kind = append(s.instances, i), append(s.kind, int32(at))
	}
}

// findSeats lists the seats and reports whether one is free.
func (s *scheduleStage) findSeats(v *route.View) bool {
	s.seats = s.seats[:0]
	some := false
	for _, i := range s.instances {
		some = some || route.HasSpareSlot(i)
	}
	if !some {
		return false
	}
	weigh(v, s.kinds, s.largest)
	s.applyMarginalRates(v)
	for j, i := range s.instances {
		x := seat{instance: int32(j), kind: s.kind[j], weight: s.kinds[s.kind[j]].weight, first: unplaced}
		if route.HasSpareSlot(i) {
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

// applyMarginalRates weighs kinds by the plan's marginal rates, where it has them and some kind present has one above
// 0.
func (s *scheduleStage) applyMarginalRates(v *route.View) {
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

// collect lists the queries that take part and can be in time on some seat.
func (s *scheduleStage) collect(v *route.View) {
	s.queries, s.latencies, s.pending = s.queries[:0], s.latencies[:0], 0
	s.margin = (1 - xi) * float64(v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[v.Stage].App].SLO.Latency)
	for r := v.Waiting().Head(); r != fleet.Nil; r = v.Fleet.Next(r) {
		t := v.Fleet.Task(r)
		x := placed{
			ref: r, rank: t.Rank(), left: float64(t.Deadline().Sub(v.Now)), at: int32(len(s.latencies)), seat: unplaced,
			next: unplaced, slack: -1, least: math.Inf(1),
		}
		if x.left <= 0 {
			continue
		}
		if x.special = t.Constrained() || t.Items() > s.largest; x.special {
			for _, i := range s.instances {
				s.latencies = append(s.latencies, float64(believed(v.Fleet, i, t)))
			}
		} else {
			for k := range s.kinds {
				y := &s.kinds[k]
				s.latencies = append(s.latencies, float64(v.Fleet.Latency(y.variant, y.device, t.Items(), y.slots)))
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
			s.latencies = s.latencies[:x.at]
			continue
		}
		s.pending++
		s.queries = append(s.queries, x)
		if len(s.queries) == max(queriesPerSeat*len(s.seats), minQueries) {
			return
		}
	}
}

// takes is the believed latency of a query on a seat, in ns.
func (s *scheduleStage) takes(q *placed, x *seat) float64 {
	if q.special {
		return s.latencies[q.at+x.instance]
	}
	return s.latencies[q.at+x.kind]
}

// placeAll makes the schedule. A query that is left out stays in the queue until the next event.
func (s *scheduleStage) placeAll() {
	s.order = s.order[:0]
	for q := range s.queries {
		s.order = append(s.order, int32(q))
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		x, y := &s.queries[a], &s.queries[b]
		return cmp.Or(int(x.rank-y.rank), cmp.Compare(x.slack, y.slack), int(a-b))
	})
	tries := maxSearches
	for _, q := range s.order {
		if j, end := s.cheapest(q, unplaced, s.margin); j != unplaced {
			if x := &s.queries[q]; end <= x.left-s.margin {
				x.left -= s.margin // later moves must keep the margin
			}
			s.insert(q, j)
			continue
		}
		if tries > 0 {
			tries--
			if !s.relocate(q) {
				s.replaceLarger(q)
			}
		}
	}
}

// cheapest returns the seat, other than except, where q costs least, of those where every query stays in time, and when
// q ends there. Seats where q keeps the margin come before the others. The seat is unplaced when there is none.
func (s *scheduleStage) cheapest(q, except int32, margin float64) (best int32, soonest float64) {
	best, soonest = unplaced, math.Inf(1)
	safe, least := s.queries[q].left-margin, math.Inf(1)
	var seen uint64 // kinds with an empty seat already seen: other empty ones cost the same
	for j := range s.seats {
		x := &s.seats[j]
		if int32(j) == except {
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

// cost is the cost of q on seat j where it ends at end.
func (s *scheduleStage) cost(q, j int32, end float64) float64 {
	x := &s.seats[j]
	takes := s.takes(&s.queries[q], x)
	return x.weight * (takes + waitWeight*(end-takes))
}

// fits returns when q would end on seat j without one of the queries there, and whether every query would be in time.
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

// insert puts q on seat j, in the order of the queue.
func (s *scheduleStage) insert(q, j int32) {
	at := &s.seats[j].first
	for *at != unplaced && *at < q {
		at = &s.queries[*at].next
	}
	s.queries[q].next, s.queries[q].seat = *at, j
	*at = q
}

// remove takes q off its seat.
func (s *scheduleStage) remove(q int32) {
	at := &s.seats[s.queries[q].seat].first
	for *at != q {
		at = &s.queries[*at].next
	}
	*at = s.queries[q].next
	s.queries[q].next, s.queries[q].seat = unplaced, unplaced
}

// relocate puts q on a seat from which another query moves to a third, at the least cost. It reports whether there is
// such a move.
func (s *scheduleStage) relocate(q int32) bool {
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
	s.remove(moves)
	s.insert(moves, to)
	s.insert(q, from)
	return true
}

// replaceLarger puts q in the place of a query with a larger cost and no higher priority, the one with the largest cost
// that makes enough room.
func (s *scheduleStage) replaceLarger(q int32) {
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
		s.remove(out)
		s.insert(q, j)
	}
}

// assignFirst assigns the first queries of the free seats.
func (s *scheduleStage) assignFirst(v *route.View) {
	for j := range s.seats {
		if x := &s.seats[j]; x.free && x.first != unplaced {
			x.free = false
			s.pending--
			v.Assign(s.queries[x.first].ref, s.instances[x.instance])
		}
	}
}

// serveLate gives queries that can be in time nowhere to seats that are still free, each where it costs least.
func (s *scheduleStage) serveLate(v *route.View) {
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
		if 2*free >= len(s.seats) || v.Now.Sub(t.Deadline()) > veryLate*slo {
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
