package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// candidate is the best batch of a stage on the machines of a group.
type candidate struct {
	formed   uint64 // for which collection of its stage
	passed   uint64 // for which collection no batch could or should begin
	option   int32
	n, items int     // tasks, 0 for no batch, and their items
	first    int     // position in stage.waiting of the first of n that follow each other
	list     []int32 // their positions instead, where tasks are mixed
	gain     float64
	price    float64 // of a second of a slot
	blocks   float64 // what of gain other stages lose because no machine is free for them meanwhile
	score    float64 // gain for each second of a slot, or about that (scoreOf)
	edge     serving.Time
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

// scoreOf compares batches of different lengths whose tasks differ in their deadlines only. With exact prices the gain
// alone would say which is best, since the price is what the time is worth; under prices that are too low the gain for
// each second would. Prices are estimates: the mean of both is better than either. typical is a length at which the
// score is the gain for each second, as it is where tasks are mixed: there prices say less.
func scoreOf(gain, t, typical float64) float64 { return gain / math.Sqrt(t*typical) }

// typicalShare is the part of an objective that a batch is taken to last.
const typicalShare = 0.3

// form finds the best batch of a stage on a group's machines.
func (x *stage) form(r *Rule, v *route.View, g int) {
	c := &x.candidates[g]
	c.formed, c.n = x.collection, 0
	if len(x.waiting)+len(x.differing) == 0 {
		return
	}
	y := &r.machines.groups[g]
	price := y.priceNow()
	c.price = price
	for k := y.of[x.id][0]; k < y.of[x.id][1]; k++ {
		switch o := &y.options[k]; {
		case x.mixed:
			x.formMixed(r, v, c, g, k, price)
		case !o.pinned:
			x.formPlain(r, v.Now, c, g, k, price)
		}
	}
}

// formPlain compares the batches of an option where tasks differ in their deadlines only. The tasks of a batch follow
// each other: from the first on that can be in time in a batch of that size or, at stages that others follow, the last
// that wait. Those leave the stages behind most time, and so larger batches.
func (x *stage) formPlain(r *Rule, now serving.Time, c *candidate, g int, k int32, price float64) {
	y := plain{r: r, now: now, stage: x, c: c, group: g, k: k, price: price}
	o := &r.machines.groups[g].options[k]
	i, n, tried := 0, len(x.waiting), 0
	limit := min(o.limit, n)
	for b := 1; ; b = min(more(b), limit) {
		t := o.seconds[b]
		i += firstWith(x.waiting[i:], now, t)
		if i+b > n {
			if b = n - i; b <= tried {
				return
			}
		}
		y.b, y.t = b, o.seconds[b]
		y.blocks, y.others = r.blocks(g, y.t, x)
		y.consider(i, &x.lost[0])
		if len(x.next) > 0 && n-b > i {
			y.consider(n-b, &x.lost[1])
		}
		if tried = b; b >= limit || i+b >= n {
			return
		}
	}
}

// plain is what formPlain compares batches of: the k-th option of a group, for a stage's tasks.
type plain struct {
	r     *Rule
	now   serving.Time
	stage *stage
	c     *candidate // the best so far
	group int
	k     int32
	price float64

	b              int     // tasks of the batches that are compared now
	t              float64 // s that they take
	blocks, others float64 // what one of them blocks, and what of that is lost of other stages
}

// consider compares the batch of the b tasks from the i-th that waits on with the best so far.
func (y *plain) consider(i int, lost *leftBehind) {
	r, x, c, b, t := y.r, y.stage, y.c, y.b, y.t
	a, o := &r.apps[x.app], &r.machines.groups[y.group].options[y.k]
	gain := -lost.worth(x, a, y.now, i, b, t) - float64(b)*x.loss(o) - y.price*t - y.blocks
	if len(x.next) == 0 && x.tasks <= 1 {
		gain += float64(b) * x.value
	} else {
		for at := i; at < i+b; at++ {
			gain += x.waiting[at].part * x.brings(a, x.waiting[at].dueIn(y.now)-t)
		}
	}
	left := x.waiting[i].left(y.now)
	if a.graph.Len() == 1 {
		pace := &r.machines.paces[r.machines.groups[y.group].device]
		gain -= x.value * float64(b) * pace.risk(left, x.waiting[i+b-1].left(y.now), t)
	}
	score := scoreOf(gain, t, typicalShare*a.slo)
	if c.n > 0 && score <= c.score {
		return
	}
	c.option, c.n, c.items, c.first, c.gain, c.blocks, c.score = y.k, b, b, i, gain, y.others, score
	c.edge = y.now.Add(time.Duration((left - o.seconds[min(b+1, o.limit)]) * 1e9))
	if b == o.limit {
		c.edge = y.now // nothing can join
	}
}
