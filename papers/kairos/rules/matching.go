package rules

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/assign"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Matching keeps queries in a central queue and pairs them with instances, busy ones too. The sum of the times that
// queries take, weighed by the worth of an instance's time, is least (Kairos §5.1, Eqs. 4-8). Only pairs whose instance
// is free begin; other queries are matched again at the next event. The first 2n queries that can still be in time
// somewhere take part, for n instances (the authors' window). Of pairings with equal cost, earlier queries are served
// first and on lower instances.
//
// A pair that would be late by Eq. 5 costs ten times the objective. The paper weighs that by the instance like all
// costs (Eq. 8 in Eq. 4). With weights below a tenth, being late would then be cheaper than a good pair. So it is not
// weighed here, as in the authors' code. A pair that would be late does not begin while its query can be in time on
// another instance: Eq. 7 demands it only because every query must be placed. Queries that can be in time nowhere get
// the instances that remain, first come first served.
//
// With several cells (§6, after POP, SOSP 2021) the instances are dealt into that many groups of the same mix. Queries
// are dealt in turn to the groups that have a free instance. Each group is matched on its own.
type Matching struct {
	cells int
	route.ByStage[matchingStage]
}

// NewMatching returns the rule with so many cells, at least 1.
func NewMatching(cells int) *Matching { return &Matching{cells: max(cells, 1)} }

// Name implements route.Router.
func (*Matching) Name() string { return "matching" }

// Needs implements route.Router.
func (*Matching) Needs() plan.Sections { return 0 }

// Traits implements route.Router.
func (*Matching) Traits() route.Traits { return route.Traits{} }

const (
	// xi is the part of the objective that believed times may use (§5.1, "noise safeguard").
	xi = 0.98
	// latePenalty is the cost of a pair that would be late, in objectives (Eq. 8).
	latePenalty = 10
	// window is how many queries are matched per instance (the authors' code).
	window = 2
)

type matchingStage struct {
	epoch   uint64
	built   bool
	kinds   []instanceKind
	largest int // items of the largest query that all instances serve
	cells   []matchingCell
	pinned  pinnedOnly
	slots   bool        // some instance has several slots
	turn    int         // index into open of the cell that gets the next query
	open    []int       // indices of cells with a free instance
	late    []fleet.Ref // first queries that can be in time nowhere, as many as there could be room for
}

// instanceKind groups instances of equal believed latency and weight.
type instanceKind struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
	slots   int
	limit   int
	weight  float64 // C_j
	takes   float64 // ns for the present query; infinite when it is too large
}

type matchingCell struct {
	instances []*fleet.Instance
	kind      []int32
	free      []bool
	wait      []float64 // ns until the instance would begin a new query
	queries   []fleet.Ref
	cost      []float64
	penalty   []float64 // by query
	match     []int32
	solver    assign.Solver
}

// Route implements route.Router.
func (o *Matching) Route(v *route.View) {
	s := o.Of(v.Stage)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v, o.cells)
	}
	s.pinned.serve(v)
	for s.round(v) && s.slots {
	}
}

// round matches once and reports whether any query was assigned.
func (s *matchingStage) round(v *route.View) bool {
	if v.Waiting().Len() == 0 || !s.openCells(v) {
		return false
	}
	weigh(v, s.kinds, s.largest)
	s.deal(v)
	began := false
	for _, at := range s.open {
		if s.cells[at].assignInTime(v) {
			began = true
		}
	}
	return s.serveLate(v) || began
}

func (s *matchingStage) build(v *route.View, cells int) {
	s.epoch, s.built, s.slots, s.largest = v.Fleet.Epoch(), true, false, route.Largest(v)
	s.kinds, s.pinned = s.kinds[:0], s.pinned[:0]
	all := slices.Clone(v.Instances())
	cells = max(min(cells, len(all)), 1)
	for len(s.cells) < cells {
		s.cells = append(s.cells, matchingCell{})
	}
	s.cells = s.cells[:cells]
	for k := range s.cells {
		c := &s.cells[k]
		c.instances, c.kind = c.instances[:0], c.kind[:0]
	}
	slices.SortStableFunc(all, func(a, b *fleet.Instance) int { return cmp.Compare(a.DeviceType(), b.DeviceType()) })
	for k, i := range all {
		if i.Active() < 0 {
			s.pinned = append(s.pinned, i)
			continue
		}
		var at int
		s.kinds, at = kindOf(s.kinds, i)
		s.slots = s.slots || i.Slots() > 1
		c := &s.cells[k%cells]
		c.instances, c.kind = append(c.instances, i), append(c.kind, int32(at))
	}
	for k := range s.cells {
		c := &s.cells[k]
		c.free, c.wait = make([]bool, len(c.instances)), make([]float64, len(c.instances))
	}
}

// openCells finds the cells with a free instance, and the believed backlogs of their instances.
func (s *matchingStage) openCells(v *route.View) bool {
	s.open = s.open[:0]
	for k := range s.cells {
		c := &s.cells[k]
		some := false
		for j, i := range c.instances {
			c.free[j] = route.HasSpareSlot(i)
			some = some || c.free[j]
		}
		if !some {
			continue
		}
		for j, i := range c.instances {
			if c.wait[j] = 0; !c.free[j] {
				c.wait[j] = float64(v.Fleet.Backlog(i, v.Now, 0))
			}
		}
		c.queries, c.cost, c.penalty = c.queries[:0], c.cost[:0], c.penalty[:0]
		s.open = append(s.open, k)
	}
	return len(s.open) > 0
}

// kindOf returns the index of an instance's kind in kinds. A new kind is appended.
func kindOf(kinds []instanceKind, i *fleet.Instance) ([]instanceKind, int) {
	x := instanceKind{
		variant: i.Variant(i.Active()).Variant, device: i.DeviceType(), slots: i.Slots(), limit: i.Limit(),
	}
	for at := range kinds {
		if y := &kinds[at]; y.variant == x.variant && y.device == x.device && y.slots == x.slots && y.limit == x.limit {
			return kinds, at
		}
	}
	return append(kinds, x), len(kinds)
}

// weigh sets the worth of a second of each kind of instance, in seconds of the fastest (C_j, Definition 1): the ratio
// of their times for the largest query that all serve. It follows the present beliefs.
func weigh(v *route.View, kinds []instanceKind, largest int) {
	least := profile.Unknown
	for k := range kinds {
		x := &kinds[k]
		takes := v.Fleet.Latency(x.variant, x.device, largest, x.slots)
		x.weight = float64(max(takes, 1))
		least = min(least, takes)
	}
	for k := range kinds {
		kinds[k].weight = float64(max(least, 1)) / kinds[k].weight
	}
}

// deal gives each waiting query that can be in time a row in one of the open cells, until all are full.
func (s *matchingStage) deal(v *route.View) {
	s.late = s.late[:0]
	slo := v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[v.Stage].App].SLO.Latency
	margin := time.Duration((1 - xi) * float64(slo))
	open, room := len(s.open), 0
	for _, at := range s.open {
		room += len(s.cells[at].instances)
	}
	for r := v.Waiting().Head(); r != fleet.Nil && open > 0; r = v.Fleet.Next(r) {
		t := v.Fleet.Task(r)
		left := t.Deadline().Sub(v.Now) - margin
		special := t.Constrained() || t.Items() > s.largest
		placed, full := false, false
		if left > 0 {
			for k := range s.kinds {
				x := &s.kinds[k]
				x.takes = math.Inf(1)
				if t.Items() <= x.limit {
					x.takes = float64(v.Fleet.Latency(x.variant, x.device, t.Items(), x.slots))
				}
			}
			penalty := latePenalty * float64(max(slo, left+margin)) // relative to the query's own objective
			for n := range s.open {
				at := s.turn + n
				for at >= len(s.open) {
					at -= len(s.open)
				}
				c := &s.cells[s.open[at]]
				if len(c.queries) >= window*len(c.instances) {
					full = true
					continue
				}
				if !c.row(v, t, s.kinds, special, float64(left), penalty) {
					continue
				}
				placed = true
				c.queries, c.penalty = append(c.queries, r), append(c.penalty, penalty)
				if len(c.queries) >= window*len(c.instances) {
					open--
				}
				s.turn = at + 1
				break
			}
		}
		if !placed && !full && len(s.late) < room && !s.pinned.mayServe(v, t) {
			s.late = append(s.late, r)
		}
	}
	if s.turn >= len(s.open) {
		s.turn = 0
	}
}

// row appends the costs of a query on the cell's instances. It removes them and returns false when the query would be
// late on all.
func (c *matchingCell) row(
	v *route.View, t *fleet.Task, kinds []instanceKind, special bool, left, penalty float64,
) bool {
	start := len(c.cost)
	c.cost = slices.Grow(c.cost, len(c.instances))[:start+len(c.instances)]
	row := c.cost[start:]
	some := false
	for j, i := range c.instances {
		x := &kinds[c.kind[j]]
		takes := x.takes
		if special {
			takes = float64(believed(v.Fleet, i, t))
		}
		row[j] = penalty
		if l := c.wait[j] + takes; l <= left {
			row[j] = x.weight * l
			some = true
		}
	}
	if !some {
		c.cost = c.cost[:start]
	}
	return some
}

// believed is how long i takes for t alone; profile.Unknown when it cannot serve it.
func believed(f *fleet.View, i *fleet.Instance, t *fleet.Task) time.Duration {
	at := f.Choose(i, t)
	if at < 0 {
		return profile.Unknown
	}
	return f.Latency(i.Variant(at).Variant, i.DeviceType(), t.Items(), i.Slots())
}

// assignInTime matches a cell's queries and assigns those that are in time on a free instance. It reports whether there
// were any.
func (c *matchingCell) assignInTime(v *route.View) bool {
	if len(c.queries) == 0 {
		return false
	}
	c.match = slices.Grow(c.match[:0], len(c.queries))[:len(c.queries)]
	c.solver.Warm = true // an event changes one column and a few rows
	if _, err := c.solver.Solve(len(c.queries), len(c.instances), c.cost, c.match); err != nil {
		panic("route: " + err.Error()) // costs are finite and have the right shape
	}
	began := false
	for q, j := range c.match {
		if j < 0 || !c.free[j] || c.cost[q*len(c.instances)+int(j)] >= c.penalty[q] {
			continue
		}
		c.free[j] = false
		v.Assign(c.queries[q], c.instances[j])
		began = true
	}
	return began
}

// serveLate gives queries that can be in time nowhere to instances that are still free, each where it costs least.
func (s *matchingStage) serveLate(v *route.View) bool {
	began := false
	for _, r := range s.late {
		t := v.Fleet.Task(r)
		var cell *matchingCell
		best, least := -1, math.Inf(1)
		for _, at := range s.open {
			c := &s.cells[at]
			for j, i := range c.instances {
				if !c.free[j] || !v.Fleet.CanServe(i, t) {
					continue
				}
				if x := s.kinds[c.kind[j]].weight * float64(believed(v.Fleet, i, t)); x < least {
					cell, best, least = c, j, x
				}
			}
		}
		if best >= 0 {
			cell.free[best] = false
			v.Assign(r, cell.instances[best])
			began = true
		}
	}
	return began
}
