package route

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/algo/assign"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Matching keeps queries in a central queue and pairs them with instances, busy ones too, so that the time they take,
// weighed by what the time of an instance is worth, adds up to the least (Kairos §5.1, Eqs. 4-8). Only pairs whose
// instance is free begin; the rest is matched again at the next event. The first 2n queries that can still be in time
// somewhere take part, n being the number of instances (the authors' window). Of pairings that cost the same, earlier
// queries are served first and on lower instances.
//
// A pair that would be late by Eq. 5 costs ten times the objective. The paper weighs that by the instance like all
// costs (Eq. 8 in Eq. 4); with weights below a tenth being late would then be cheaper than a good pair, so it is not
// weighed here, as in the authors' code. A pair that would be late does not begin while its query can be in time on
// another instance: Eq. 7 only demands it because every query must be somewhere. Queries that can be in time nowhere
// get what is left, first come first served.
//
// With several cells (§6, after POP, SOSP 2021) the instances are dealt into that many groups of the same mix, and
// queries are dealt in turn to the groups that have a free instance, which are matched on their own.
type Matching struct {
	cells  int
	stages []matchingStage
}

// NewMatching returns the rule for so many cells, at least one.
func NewMatching(cells int) *Matching { return &Matching{cells: max(cells, 1)} }

// Name implements Router.
func (*Matching) Name() string { return "matching" }

// Needs implements Router.
func (*Matching) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (*Matching) Traits() Traits { return Traits{} }

const (
	// xi is the part of the objective that may be used by what is believed (§5.1, "noise safeguard").
	xi = 0.98
	// lateness is the cost of a pair that would be late, in objectives (Eq. 8).
	lateness = 10
	// window is how many queries are matched for each instance (the authors' code).
	window = 2
)

type matchingStage struct {
	epoch   uint64
	built   bool
	kinds   []matchingKind
	largest int // query, in items, that all instances serve
	cells   []matchingCell
	slots   bool // whether an instance has several
	turn    int  // which of the open cells is dealt the next query
	open    []int
	late    []fleet.Ref // as many of the first that can be in time nowhere as there could be room for
}

// matchingKind is a way in which instances serve: what they believe and what their time is worth depends on nothing
// else.
type matchingKind struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
	slots   int
	limit   int
	weight  float64 // C_j
	takes   float64 // of the query at hand, in ns; infinite when it is too large
}

type matchingCell struct {
	instances []*fleet.Instance
	kind      []int32
	free      []bool
	wait      []float64 // ns until the instance begins with what it is given
	queries   []fleet.Ref
	cost      []float64
	penalty   []float64 // by query
	match     []int32
	solver    assign.Solver
}

// Route implements Router.
func (o *Matching) Route(v *View) {
	for len(o.stages) <= int(v.Stage) {
		o.stages = append(o.stages, matchingStage{})
	}
	s := &o.stages[v.Stage]
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v, o.cells)
	}
	for s.round(v) && s.slots {
	}
}

// round matches once and tells whether anything began.
func (s *matchingStage) round(v *View) bool {
	if v.Waiting().Len() == 0 || !s.look(v) {
		return false
	}
	weigh(v, s.kinds, s.largest)
	s.deal(v)
	began := false
	for _, at := range s.open {
		if s.cells[at].begin(v) {
			began = true
		}
	}
	return s.serveLate(v) || began
}

func (s *matchingStage) build(v *View, cells int) {
	s.epoch, s.built, s.slots, s.largest = v.Fleet.Epoch(), true, false, largest(v)
	s.kinds = s.kinds[:0]
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

// look finds the cells with a free instance and what the instances have left to do.
func (s *matchingStage) look(v *View) bool {
	s.open = s.open[:0]
	for k := range s.cells {
		c := &s.cells[k]
		some := false
		for j, i := range c.instances {
			c.free[j] = open(i)
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

// kindOf returns the place of an instance's kind among kinds, which it is added to if it is new.
func kindOf(kinds []matchingKind, i *fleet.Instance) ([]matchingKind, int) {
	x := matchingKind{
		variant: i.Variant(i.Active()).Variant, device: i.DeviceType(), slots: i.Slots(), limit: i.Limit(),
	}
	for at := range kinds {
		if y := &kinds[at]; y.variant == x.variant && y.device == x.device && y.slots == x.slots && y.limit == x.limit {
			return kinds, at
		}
	}
	return append(kinds, x), len(kinds)
}

// weigh finds what a second of each kind of instance is worth, in seconds of the fastest (C_j, Definition 1): the ratio
// of what they take for the largest query that all serve. It follows what is believed at the time.
func weigh(v *View, kinds []matchingKind, largest int) {
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

// deal gives each waiting query that can be in time a row in one of the open cells, until they are full.
func (s *matchingStage) deal(v *View) {
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
		slow := t.Special() || t.Items() > s.largest
		placed, full := false, false
		if left > 0 {
			for k := range s.kinds {
				x := &s.kinds[k]
				x.takes = math.Inf(1)
				if t.Items() <= x.limit {
					x.takes = float64(v.Fleet.Latency(x.variant, x.device, t.Items(), x.slots))
				}
			}
			penalty := lateness * float64(max(slo, left+margin)) // with an objective of its own, of that
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
				if !c.row(v, t, s.kinds, slow, float64(left), penalty) {
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
		if !placed && !full && len(s.late) < room {
			s.late = append(s.late, r)
		}
	}
	if s.turn >= len(s.open) {
		s.turn = 0
	}
}

// row appends the costs of a query on the cell's instances; it takes them back and returns false when it would be late
// on all.
func (c *matchingCell) row(v *View, t *fleet.Task, kinds []matchingKind, slow bool, left, penalty float64) bool {
	begin := len(c.cost)
	c.cost = slices.Grow(c.cost, len(c.instances))[:begin+len(c.instances)]
	row := c.cost[begin:]
	some := false
	for j, i := range c.instances {
		x := &kinds[c.kind[j]]
		takes := x.takes
		if slow {
			takes = float64(believed(v.Fleet, i, t))
		}
		row[j] = penalty
		if l := c.wait[j] + takes; l <= left {
			row[j] = x.weight * l
			some = true
		}
	}
	if !some {
		c.cost = c.cost[:begin]
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

// begin matches a cell's queries and assigns those that are in time on a free instance.
func (c *matchingCell) begin(v *View) bool {
	if len(c.queries) == 0 {
		return false
	}
	c.match = slices.Grow(c.match[:0], len(c.queries))[:len(c.queries)]
	c.solver.Warm = true // an event changes one column and a few rows
	if _, err := c.solver.Solve(len(c.queries), len(c.instances), c.cost, c.match); err != nil {
		panic("route: " + err.Error()) // costs are finite and the shape is right, whatever waits
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

// serveLate gives queries that can be in time nowhere to instances that are still free, each to where it costs least.
func (s *matchingStage) serveLate(v *View) bool {
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
