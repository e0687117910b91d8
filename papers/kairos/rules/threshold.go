package rules

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Threshold keeps queries in a central queue. Queries of more than a number of items go to instances of the base type,
// others to the other types, first come first served in both classes, whatever the objective (DeepRecSys as Kairos §7
// describes it, DRS). The base type is the one believed fastest for the largest query that all types serve. A query
// goes to the other class only where no instance of its own class may serve it.
type Threshold struct {
	items int
	route.ByStage[thresholdStage]
}

type thresholdStage struct {
	epoch uint64
	built bool
	base  serving.DeviceTypeID
	free  [2]bool // some instance of the class has a spare slot, by class
}

// NewThreshold returns the rule for queries of more than so many items.
func NewThreshold(items int) *Threshold { return &Threshold{items: items} }

// Name implements route.Router.
func (*Threshold) Name() string { return "threshold" }

// Needs implements route.Router.
func (*Threshold) Needs() plan.Sections { return 0 }

// Traits implements route.Router.
func (*Threshold) Traits() route.Traits { return route.Traits{} }

// Route implements route.Router.
func (o *Threshold) Route(v *route.View) {
	s := o.Of(v.Stage)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.epoch, s.built = v.Fleet.Epoch(), true
		s.base = base(v)
	}
	all := v.Instances()
	for k := range s.free {
		s.free[k] = false
	}
	for _, i := range all {
		if route.HasSpareSlot(i) {
			s.free[class(i.DeviceType() == s.base)] = true
		}
	}
	for r := v.Waiting().Head(); r != fleet.Nil && (s.free[0] || s.free[1]); {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		large := t.Items() > o.items
		if !exists(v.Fleet, all, s.base, large, t) {
			large = !large
		}
		if s.free[class(large)] && !o.give(v, s, all, large, r) && !t.Constrained() && t.Items() == 1 {
			s.free[class(large)] = false
		}
		r = next
	}
}

// give assigns a query to the first free instance of a class.
func (o *Threshold) give(v *route.View, s *thresholdStage, all []*fleet.Instance, large bool, r fleet.Ref) bool {
	t := v.Fleet.Task(r)
	for _, i := range all {
		if (i.DeviceType() == s.base) == large && route.HasSpareSlot(i) && v.Fleet.CanServe(i, t) {
			v.Assign(r, i)
			return true
		}
	}
	return false
}

// exists reports whether an instance of the class may serve t at all.
func exists(f *fleet.View, all []*fleet.Instance, base serving.DeviceTypeID, large bool, t *fleet.Task) bool {
	for _, i := range all {
		if (i.DeviceType() == base) == large && f.CanServe(i, t) {
			return true
		}
	}
	return false
}

func class(large bool) int {
	if large {
		return 1
	}
	return 0
}

// base returns the device type of the ready instance that is believed fastest for the largest query that all serve.
func base(v *route.View) serving.DeviceTypeID {
	items := route.Largest(v)
	best, least := serving.DeviceTypeID(0), time.Duration(1<<63-1)
	for _, i := range v.Instances() {
		if i.Active() < 0 {
			continue
		}
		if l := v.Fleet.Latency(i.Variant(i.Active()).Variant, i.DeviceType(), items, i.Slots()); l < least {
			best, least = i.DeviceType(), l
		}
	}
	return best
}
