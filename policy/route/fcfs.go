package route

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// FCFS keeps queries in a central queue and gives the first one to a free instance of the preferred device type.
// Preferred is the order of the plan's Prefer, otherwise the type believed fastest for the largest query that all
// instances serve (Ribbon's rule as Kairos §3 and §7 describe it: the base type first). It does not ask whether the
// query will be in time. An instance is free while it has a free slot and room in the batch that it is filling, so that
// any batcher can fill its batch.
type FCFS struct {
	// Idle restricts it to instances with a free slot that no queued query waits for: one query at a time, as in
	// Ribbon.
	Idle bool
	ByStage[fcfsStage]
}

type fcfsStage struct {
	epoch uint64
	built bool
	order []*fleet.Instance
}

// NewFCFS returns the rule.
func NewFCFS() *FCFS { return &FCFS{} }

// Name implements Router.
func (*FCFS) Name() string { return "fcfs" }

// Needs implements Router.
func (*FCFS) Needs() plan.Sections { return 0 }

// Traits implements Router.
func (*FCFS) Traits() Traits { return Traits{} }

// Route implements Router.
func (o *FCFS) Route(v *View) {
	s := o.Of(v.Stage)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v)
	}
	// Instances that are full for a query without requirements are skipped for the remaining queries.
	from := 0
	for r := v.Waiting().Head(); r != fleet.Nil && from < len(s.order); {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		for at := from; at < len(s.order); at++ {
			i := s.order[at]
			if o.Idle && !HasSpareSlot(i) || !Free(v.Fleet, i, t) {
				if at == from && (i.FreeSlots() == 0 || i.Queue().Items() >= i.Limit() || o.Idle && !HasSpareSlot(i)) {
					from++
				}
				continue
			}
			v.Assign(r, i)
			break
		}
		r = next
	}
}

func (s *fcfsStage) build(v *View) {
	s.epoch, s.built = v.Fleet.Epoch(), true
	s.order = append(s.order[:0], v.Instances()...)
	rank := func(i *fleet.Instance) int {
		if v.Plan == nil || len(v.Plan.Prefer) == 0 {
			return 0
		}
		if at := slices.Index(v.Plan.Prefer, i.DeviceType()); at >= 0 {
			return at
		}
		return len(v.Plan.Prefer)
	}
	big := fleet.Work{Items: int32(Largest(v)), Pin: serving.None}
	slices.SortStableFunc(s.order, func(a, b *fleet.Instance) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		la, lb := v.Fleet.FastestFor(a, &big), v.Fleet.FastestFor(b, &big)
		switch {
		case la < lb:
			return -1
		case la > lb:
			return 1
		}
		return int(a.ID() - b.ID())
	})
}
