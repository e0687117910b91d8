package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// mostSeeds is how many tasks of a queue are tried as the first of a batch: they lie ever further apart.
const mostSeeds = 12

// collectMixed lists the tasks of a queue that wait and can be in time, and what they are worth if they are left
// behind.
func (x *stage) collectMixed(r *Rule, v *route.View, q *fleet.Queue) {
	a := &r.apps[x.app]
	x.listMixed(a, v, q, x.least)
	if x.tasks > 1 {
		x.shareValue(len(x.differing), func(k int) *place { return &x.differing[k].place })
	}
	for k := range x.differing {
		y := &x.differing[k]
		if !y.cold {
			c := x.classOf(y.items)
			y.later = x.worthOf(a, c, y.due-x.waitFor(c, x.classes[c].least), y.part)
		}
	}
	r.lookAhead(v, x)
}

// listMixed lists the tasks of a queue that have at least so many seconds left.
func (x *stage) listMixed(a *app, v *route.View, q *fleet.Queue, least float64) {
	x.differing = x.differing[:0]
	for ref := q.Head(); ref != fleet.Nil && len(x.differing) < mostMixed; ref = v.Fleet.Next(ref) {
		t := v.Fleet.Task(ref)
		y := task{place: newPlace(ref, t), items: t.Items()}
		y.left, y.due = y.place.left(v.Now), y.dueIn(v.Now)
		if t.ColdUntil() >= v.Now && t.ColdUntil() > 0 {
			y.left, y.due = max(y.left, a.slo), max(y.due, a.slo) // it may be late, and wants to begin
			y.cold = true
		} else if y.left < least {
			continue
		}
		x.differing = append(x.differing, y)
	}
}

// formMixed compares the batches of an option where tasks differ in size, in priority, or in what they require. A batch
// begins with a seed and takes up later tasks in the order of the queue, each that stays in time and that it leaves in
// time. Of the batches on the way the one with the highest score counts. Only tasks of the highest priority that waits
// are seeds. A task that must run alone does.
func (x *stage) formMixed(r *Rule, v *route.View, c *candidate, g int, k int32, price float64) {
	o := &r.machines.groups[g].options[k]
	seeds, next := 0, 0
	rank := v.Fleet.Task(x.differing[0].ref).Rank()
	for i := 0; i < len(x.differing) && seeds < mostSeeds; i++ {
		y := &x.differing[i]
		if y.items > o.limit || o.seconds[y.items] > y.left || i < next || !y.mayBegin(g) {
			continue
		}
		t := v.Fleet.Task(y.ref)
		if t.Rank() != rank {
			break
		}
		if !o.accepts(v.Fleet, t) {
			continue
		}
		next = max(i+1, i*5/4)
		seeds++
		x.grow(r, v, c, g, k, price, i, t.Isolated())
	}
}

// grow forms the batches that begin with a seed.
func (x *stage) grow(r *Rule, v *route.View, c *candidate, g int, k int32, price float64, seed int, alone bool) {
	a, o := &r.apps[x.app], &r.machines.groups[g].options[k]
	items, gain, left := 0, 0.0, math.Inf(1) // left is the least of any task's
	brought, latest := 0.0, 0.0
	pace := &r.machines.paces[r.machines.groups[g].device]
	own := r.list[:0]
	for j := seed; j < len(x.differing); j++ {
		y := &x.differing[j]
		if items+y.items > o.limit || !y.mayJoin(g) {
			continue
		}
		t := o.seconds[items+y.items]
		if t > min(left, y.left) {
			continue
		}
		if j > seed {
			w := v.Fleet.Task(y.ref)
			if w.Isolated() || !o.accepts(v.Fleet, w) {
				continue
			}
		}
		brings := y.part * x.brings(a, y.due-t)
		more := brings - x.loss(o) - y.later
		if j > seed && more < 0 {
			continue // it brings more later
		}
		items, gain, left = items+y.items, gain+more, min(left, y.left)
		brought, latest = brought+brings, max(latest, y.left)
		own = append(own, int32(j))
		blocks, others := r.blocks(g, t, x)
		net := gain - price*t - blocks
		if a.graph.Len() == 1 {
			net -= brought * pace.risk(left, latest, t)
		}
		if score := net / t; c.n == 0 || score > c.score {
			c.option, c.n, c.items, c.gain, c.blocks, c.score = k, len(own), items, net, others, score
			c.list = append(c.list[:0], own...)
			c.edge = v.Now
			if items < o.limit {
				c.edge = v.Now.Add(time.Duration((left - o.seconds[items+1]) * 1e9))
			}
		}
		if alone {
			break
		}
	}
	r.list = own
}
