package priced

import (
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// serveLate gives machines that have nothing better to do to tasks that can be in time nowhere, in the order of their
// queues. Such tasks wait where an app serves late queries, and where beliefs are doubted.
func (r *Rule) serveLate(v *route.View) {
	for s := range r.stages {
		x := &r.stages[s]
		q := v.Fleet.Central(x.id)
		for q.Len() > 0 && r.machines.freeFor(x) {
			if !x.collected {
				x.collect(r, v, q)
			}
			drops := v.Fleet.Spec().Apps[x.app].Late == serving.DropLate
			if drops && x.late == 0 && len(x.waiting) > 0 || !r.startLate(v, x) {
				break
			}
		}
	}
}

// startLate begins a batch of the first tasks of a queue that share an option: the one that serves most items a second.
// It reports whether there is one.
func (r *Rule) startLate(v *route.View, x *stage) bool {
	q := v.Fleet.Central(x.id)
	head := v.Fleet.Task(q.Head())
	group, at, best := -1, int32(0), 0.0
	for _, g := range x.groups {
		y := &r.machines.groups[g]
		if y.free == 0 {
			continue
		}
		for k := y.of[x.id][0]; k < y.of[x.id][1]; k++ {
			o := &y.options[k]
			if head.Items() > o.limit || !o.accepts(v.Fleet, head) {
				continue
			}
			n := min(q.Items(), o.limit)
			if rate := float64(n) / o.seconds[n]; rate > best {
				group, at, best = int(g), k, rate
			}
		}
	}
	if group < 0 {
		return false
	}
	o := &r.machines.groups[group].options[at]
	n := min(q.Items(), o.limit)
	i := r.machines.take(group, v.Now, o.seconds[n]).instances[o.position]
	v.Choose(i, o.variant)
	items, alone := 0, head.Isolated()
	for ref := q.Head(); ref != fleet.Nil; {
		t, next := v.Fleet.Task(ref), v.Fleet.Next(ref)
		if items+t.Items() > o.limit || items > 0 && (alone || t.Isolated() || t.Constrained()) {
			break
		}
		items += t.Items()
		v.Assign(ref, i)
		ref = next
	}
	x.forget()
	return true
}
