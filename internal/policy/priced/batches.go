package priced

import (
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// candidate is the best batch of a stage on the machines of a group.
type candidate struct {
	batch
	formed uint64 // for which collection of its stage
	passed uint64 // for which collection no batch could or should begin
	edge   serving.Time
}

// idleness is the factor by which a machine's time is worth less for each further machine of its group that is free: as
// long as others are, a batch takes nothing from what comes.
const idleness = 0.5

// collect lists the tasks of a stage that wait and can be in time.
func (x *stage) collect(r *Rule, v *route.View, q *fleet.Queue) {
	r.collections++
	x.collection = r.collections
	x.mixed = !q.Unconstrained() || !q.SingleItems() || !v.Fleet.Uniform(q)
	x.until, x.placed = x.until[:0], false
	for c := range x.classes {
		x.until = append(x.until, r.machines.untilNext(x, c, v))
	}
	if x.mixed {
		x.row.forget()
		x.waiting = nil
		x.collectMixed(r, v, q)
		return
	}
	x.differing = x.differing[:0]
	x.waiting = x.row.follow(v.Fleet, q, v.Now, x.least)
	if x.tasks > 1 {
		x.shareValue(len(x.waiting), func(k int) *place { return &x.waiting[k] })
	}
	x.single = x.classOf(1)
	for k := range x.lost {
		x.lost[k].reset(len(x.waiting))
	}
}

// shareValue divides the value of every query among its tasks that still wait here. The less of them are left, the more
// each is worth: all are needed, and the others are paid for. Tasks of a query follow each other.
func (x *stage) shareValue(n int, task func(k int) *place) {
	for from := 0; from < n; {
		to := from + 1
		for to < n && task(to).query == task(from).query {
			to++
		}
		part := x.tasks / float64(to-from)
		for ; from < to; from++ {
			task(from).part = part
		}
	}
}

// form finds the best batch of a stage on a group's machines.
func (x *stage) form(r *Rule, v *route.View, g int) {
	c := &x.candidates[g]
	c.formed, c.n = x.collection, 0
	if len(x.waiting)+len(x.differing) == 0 {
		return
	}
	y := &r.machines.groups[g]
	price := y.priceNow()
	options := y.serving(x)
	if x.mixed {
		options = y.holding(x)
	}
	for k := range options {
		if w := r.way(x, g, &options[k], price); x.mixed {
			r.formMixed(v, c, &w)
		} else {
			r.formPlain(v.Now, c, &w)
		}
	}
}

// formPlain compares the batches of an option where tasks differ in their deadlines only. The tasks of a batch follow
// each other: from the first on that can be in time in a batch of that size or, at stages that others follow, the last
// that wait. Those leave the stages behind most time, and so larger batches.
func (r *Rule) formPlain(now serving.Time, c *candidate, w *way) {
	x, o := w.stage, w.option
	i, n, tried := 0, len(x.waiting), 0
	limit := min(o.limit, n)
	for b := 1; ; b = min(more(b), limit) {
		i += firstWith(x.waiting[i:], now, o.seconds[b])
		if i+b > n {
			if b = n - i; b <= tried {
				return
			}
		}
		blocks, others := r.blocks(w.group, o.seconds[b], x)
		w.consider(now, c, &x.lost[0], batch{first: i, n: b, blocks: others}, blocks)
		if len(x.next) > 0 && n-b > i {
			w.consider(now, c, &x.lost[1], batch{first: n - b, n: b, blocks: others}, blocks)
		}
		if tried = b; b >= limit || i+b >= n {
			return
		}
	}
}

// consider compares a batch of tasks that follow each other with the best so far.
func (w *way) consider(now serving.Time, c *candidate, lost *leftBehind, y batch, blocks float64) {
	x, o, b := w.stage, w.option, y.n
	t, own := o.seconds[b], x.waiting[y.first:y.first+b]
	sum := tally{n: b, left: lost.value(x, w.app, now, y.first, b, t), loss: float64(b) * x.loss(o)}
	sum.tightest, sum.latest = own[0].left(now), own[b-1].left(now)
	first := x.firstOf(o)
	if len(x.next) == 0 && x.tasks <= 1 && first == nil {
		sum.reward = float64(b) * x.value
	} else {
		for k := range own {
			sum.reward += x.reward(w.app, first, x.single, noSecond, own[k].part, own[k].dueIn(now), t)
		}
	}
	y.gain = w.gain(&sum, t, t, blocks)
	if y.score = w.score(y.gain, t); c.n > 0 && y.score <= c.score {
		return
	}
	y.option, y.items, y.price, y.list = o, b, w.price, c.list[:0]
	c.batch, c.edge = y, now // nothing can join
	if b < o.limit {
		c.edge = now.Add(time.Duration((sum.tightest - o.seconds[b+1]) * 1e9))
	}
}
