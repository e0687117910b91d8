package priced

import (
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// mostSeeds is how many tasks of a queue are tried as the first of a batch: they lie ever further apart.
const mostSeeds = 12

// collectMixed lists the tasks of a queue that wait and can be in time.
func (x *stage) collectMixed(r *Rule, v *route.View, q *fleet.Queue) {
	x.listMixed(&r.apps[x.app], v, q, x.least)
	if x.tasks > 1 {
		x.shareValue(len(x.differing), func(k int) *place { return &x.differing[k].place })
		for k := range x.differing {
			if y := &x.differing[k]; y.second >= 0 {
				y.part = 1 // accuracy is the mean over items: a better one counts whatever becomes of the others
			}
		}
	}
	r.lookAhead(v, x)
}

// listMixed lists the tasks of a queue that have at least so many seconds left.
func (x *stage) listMixed(a *app, v *route.View, q *fleet.Queue, least float64) {
	x.differing, x.long = x.differing[:0], false
	for ref := q.Head(); ref != fleet.Nil && len(x.differing) < mostMixed; ref = v.Fleet.Next(ref) {
		t := v.Fleet.Task(ref)
		y := task{place: newPlace(ref, t), items: t.Items(), length: t.Length(), class: x.classOf(t.Items())}
		y.left, y.due, y.second = y.place.left(v.Now), y.dueIn(v.Now), int32(x.kindOf(t))
		if y.floor = t.MayTry(); y.floor > 0 {
			x.floor = y.floor
		}
		if t.ColdUntil() >= v.Now && t.ColdUntil() > 0 {
			y.left, y.due = max(y.left, a.slo), max(y.due, a.slo) // it may be late, and wants to begin
			y.cold = true
		} else if y.length == 0 && y.left < least || y.left < 0 {
			continue
		}
		x.long = x.long || y.length > 0
		x.differing = append(x.differing, y)
	}
}

// formMixed compares the batches of an option where tasks differ in size, in priority, or in what they require. A batch
// begins with a seed and takes up later tasks in the order of the queue, each that stays in time and that it leaves in
// time. Of the batches on the way the one with the highest score counts. Only tasks of the highest priority that waits
// are seeds. A task that must run alone does.
func (r *Rule) formMixed(v *route.View, c *candidate, w *way) {
	x, o := w.stage, w.option
	r.stretch(v, w)
	seeds, next := 0, 0
	rank := v.Fleet.Task(x.differing[0].ref).Rank()
	for i := 0; i < len(x.differing) && seeds < mostSeeds; i++ {
		y := &x.differing[i]
		if y.items > o.limit || i < next || !y.mayBegin(w.group) ||
			o.stretched(o.even[y.items], r.factor(i)) > y.left {
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
		r.grow(v, c, w, i, t.Isolated())
	}
}

// grow forms the batches that begin with a seed. What a task brings, and is worth if it is left, counts as of the time
// that the batch takes when it joins: to sum all up anew for each that joins makes no difference.
func (r *Rule) grow(v *route.View, c *candidate, w *way, seed int, alone bool) {
	x, o := w.stage, w.option
	first := x.firstOf(o)
	sum, items, own := newTally(), 0, r.list[:0]
	last := 0.0
	r.runs.reset()
	for j := seed; j < len(x.differing); j++ {
		y := &x.differing[j]
		if items+y.items > o.limit || !y.mayJoin(w.group) {
			continue
		}
		t := o.seconds[items+y.items]
		if x.long {
			t = r.runs.with(o, y, r.factor(j))
		}
		if t > min(sum.tightest, y.left) {
			continue
		}
		if j > seed {
			task := v.Fleet.Task(y.ref)
			if task.Isolated() || !o.accepts(v.Fleet, task) {
				continue
			}
		}
		second := int(y.second)
		reward, left := x.reward(w.app, first, y.class, second, y.part, y.due, t), 0.0
		reward -= x.fallsShort(w.app, first, y, t)
		loss := x.lossOf(o, second, y.part)
		if !y.cold {
			left = x.leftFor(w.app, y.class, second, y.due, x.waitFor(y.class, t), y.part, r.factor(j))
		}
		if j > seed && reward-loss < left {
			continue // it brings more later
		}
		before := sum
		sum.add(reward, left, loss, y.left)
		blocks, others := r.blocks(w.group, t, x)
		gain := w.gain(&sum, t, t, blocks)
		if x.long {
			if j > seed && gain < last-tolerance {
				sum = before // it lengthens the batch by more than it brings
				continue
			}
			r.runs.join()
		}
		last = gain
		items += y.items
		own = append(own, int32(j))
		if score := w.score(gain, t); c.n == 0 || score > c.score {
			c.batch = batch{
				option: o, n: len(own), items: items, list: append(c.list[:0], own...), gain: gain, price: w.price,
				blocks: others, score: score, takes: t,
			}
		}
		if alone {
			break
		}
	}
	r.list = own
}
