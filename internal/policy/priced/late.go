package priced

import (
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const (
	// spareForLate is the part of a group's slots that has to be free before late tasks take one, as 1 in so many: they
	// may wait as long as they take little from those that can be in time.
	spareForLate = 2
	// shareForLate is the part of a group's time that late tasks have in any case, as 1 in so many, so that they do not
	// wait for ever where machines are always busy.
	shareForLate = 64
)

// serveLate gives machines that have nothing better to do to tasks that can be in time nowhere, in the order of their
// queues. Such tasks wait where an app serves late queries, and where beliefs are doubted. A task that a busy machine
// can still serve in time waits for that.
func (r *Rule) serveLate(v *route.View) {
	for s := range r.stages {
		x := &r.stages[s]
		for v.Fleet.Central(x.id).Len() > 0 && r.machines.freeFor(x) && r.startLate(v, x) {
			x.forget()
		}
	}
}

// serveOverdue gives late tasks of apps that serve them their part of the machines' time, before any others.
func (r *Rule) serveOverdue(v *route.View) {
	for s := range r.stages {
		x := &r.stages[s]
		q := v.Fleet.Central(x.id)
		if q.Len() == 0 || v.Fleet.Spec().Apps[x.app].Late != serving.ServeLate ||
			!r.hopeless(v, x, v.Fleet.Task(q.Head())) {
			continue
		}
		due := false
		for _, g := range x.groups {
			due = due || r.machines.groups[g].free > 0 && v.Now >= r.machines.groups[g].lateFrom
		}
		if due && r.startLate(v, x) {
			x.forget()
		}
	}
}

// hopeless reports whether a task can be in time on no machine, busy ones included.
func (r *Rule) hopeless(v *route.View, x *stage, t *fleet.Task) bool {
	if t.Hint() > 0 {
		return false // it has an answer
	}
	left := t.LatestEnd().Sub(v.Now).Seconds()
	if t.ColdUntil() >= v.Now && t.ColdUntil() > 0 {
		left = max(left, r.apps[x.app].slo) // as in collect
	}
	if left < x.least {
		return true
	}
	for _, g := range x.groups {
		y := &r.machines.groups[g]
		wait := 0.0
		if _, end, ok := y.ends.Min(); ok && y.free == 0 {
			wait = max(float64(end-int64(v.Now))/1e9, 0)
		}
		options := y.holding(x)
		for k := range options {
			o := &options[k]
			if t.Items() <= o.limit && o.accepts(v.Fleet, t) && wait+o.takes(v.Fleet, y.device, t) <= left {
				return false
			}
		}
	}
	return true
}

// startLate begins a batch of the first hopeless tasks of a queue that share an option: the one that serves most items
// a second. It reports whether there is one.
func (r *Rule) startLate(v *route.View, x *stage) bool {
	q := v.Fleet.Central(x.id)
	first := q.Head()
	for n := 0; first != fleet.Nil && !r.hopeless(v, x, v.Fleet.Task(first)); n++ {
		if first = v.Fleet.Next(first); n >= mostTasks {
			return false
		}
	}
	if first == fleet.Nil {
		return false
	}
	head := v.Fleet.Task(first)
	idle := r.machines.free == r.machines.slots
	best, rate := -1, 0.0
	var o *option
	for _, g := range x.groups {
		y := &r.machines.groups[g]
		busy := !idle && (y.free < 2 || spareForLate*y.free < y.all())
		if y.free == 0 || busy && v.Now < y.lateFrom {
			continue
		}
		options := y.holding(x)
		for k := range options {
			if head.Items() > options[k].limit || !options[k].accepts(v.Fleet, head) {
				continue
			}
			n := r.lateItems(v, x, &options[k], head, q)
			if now := float64(n) / options[k].seconds[n]; now > rate {
				best, o, rate = int(g), &options[k], now
			}
		}
	}
	if o == nil {
		return false
	}
	n := r.lateItems(v, x, o, head, q)
	m := r.machines.take(best, o.position, v.Now, o.seconds[n])
	if m == nil {
		return false
	}
	y := &r.machines.groups[best]
	y.lateFrom = v.Now.Add(time.Duration(1e9 * o.seconds[n] * shareForLate / float64(y.all())))
	i := m.instances[o.position]
	v.Choose(i, o.variant)
	tasks, items, alone := 0, 0, head.Isolated()
	for ref := first; ref != fleet.Nil; {
		t, next := v.Fleet.Task(ref), v.Fleet.Next(ref)
		if items+t.Items() > n || items > 0 && (alone || t.Isolated() || t.Constrained() ||
			!r.hopeless(v, x, t)) {
			break
		}
		tasks, items = tasks+1, items+t.Items()
		v.Assign(ref, i)
		ref = next
	}
	if r.watch != nil {
		b := batch{option: o, n: tasks, items: items, price: y.price}
		r.beganAlone(i, x, &b, true, false)
	}
	return true
}

// lateItems is the most items of a batch of late tasks. Under a proposed objective an option's limit may take longer
// than the objective (planner fluid). A late batch then does so only if its first task alone does.
func (r *Rule) lateItems(v *route.View, x *stage, o *option, head *fleet.Task, q *fleet.Queue) int {
	n := min(q.Items(), o.limit)
	if v.Fleet.Spec().Apps[x.app].SLO.Proposed {
		for n > head.Items() && o.seconds[n] > r.apps[x.app].slo {
			n--
		}
	}
	return n
}

// joining returns how many late tasks at the head of a queue join a batch of others: as many as it has room for while
// machine time is not short, and the batch stays short and in time.
func (r *Rule) joining(v *route.View, x *stage, g int, c *candidate) (n int) {
	if x.mixed || x.tasks > 1 || v.Fleet.Spec().Apps[x.app].Late != serving.ServeLate {
		return 0
	}
	y, a := &r.machines.groups[g], &r.apps[x.app]
	o := c.option
	if y.scarce() {
		return 0
	}
	longest := min(x.waiting[c.first].left(v.Now), max(typicalShare*a.slo, o.seconds[c.items]))
	for ref := v.Fleet.Central(x.id).Head(); ref != fleet.Nil && c.items+n < o.limit; ref = v.Fleet.Next(ref) {
		t := v.Fleet.Task(ref)
		if t.Isolated() || o.seconds[c.items+n+1] > longest || !r.hopeless(v, x, t) {
			break
		}
		n++
	}
	return n
}
