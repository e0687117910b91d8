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
	formed   bool
	option   int32
	n, items int     // tasks, 0 for no batch, and their items
	first    int     // position in stage.waiting of the first of n that follow each other
	list     []int32 // their positions instead, where tasks are mixed
	gain     float64
	score    float64 // gain for each second of a slot, or about that (scoreOf)
	edge     serving.Time
}

// idleness is the factor by which a machine's time is worth less for each further machine of its group that is free: as
// long as others are, a batch takes nothing from what comes.
const idleness = 0.5

// collect lists the tasks of a stage that wait and can be in time, and what they are worth if they are left behind.
func (x *stage) collect(r *Rule, v *route.View, q *fleet.Queue) {
	x.collected = true
	x.waiting, x.lost, x.late = x.waiting[:0], append(x.lost[:0], 0), 0
	x.mixed = !q.Unconstrained() || !q.SingleItems() || !v.Fleet.Uniform(q)
	most := mostTasks
	if x.mixed {
		most = mostMixed
	}
	a := &r.apps[x.app]
	x.waitFor = x.waitFor[:0]
	for c := range x.classes {
		x.waitFor = append(x.waitFor, r.behind(x)*x.budget+r.machines.untilNext(x, c, v))
	}
	for ref := q.Head(); ref != fleet.Nil && len(x.waiting) < most; ref = v.Fleet.Next(ref) {
		t := v.Fleet.Task(ref)
		y := task{
			ref: ref, items: t.Items(), left: t.LatestEnd().Sub(v.Now).Seconds(), due: t.Due().Sub(v.Now).Seconds(),
			part: 1,
		}
		switch {
		case t.ColdUntil() >= v.Now && t.ColdUntil() > 0:
			y.left, y.due = max(y.left, a.slo), max(y.due, a.slo) // it may be late, and wants to begin
			y.cold = true
		case y.left < x.least:
			x.late++
			continue
		}
		x.waiting = append(x.waiting, y)
	}
	if x.tasks > 1 {
		x.shareValue(v.Fleet)
	}
	came, each := 0.0, queueShare/max(x.rate, 1e-9)
	for k := range x.waiting {
		y := &x.waiting[k]
		came += each * float64(y.items)
		if !y.cold {
			c := x.classOf(y.items)
			y.later = x.worthOf(a, c, y.due-x.waitFor[c]-min(came, queueShare*a.slo), y.part)
		}
		x.lost = append(x.lost, x.lost[k]+y.later)
	}
}

// behind is the part of a stage's time that a task which is left behind is taken to wait beyond the next free machine:
// the more slots, the sooner comes another.
func (r *Rule) behind(x *stage) float64 {
	slots := 0
	for _, g := range x.groups {
		slots += r.machines.groups[g].all()
	}
	return min(mostBehind, max(leastBehind, behindSlots/float64(slots)))
}

// shareValue divides the value of every query among its tasks that still wait here. The less of them are left, the more
// each is worth: all are needed, and the others are paid for. Tasks of a query follow each other.
func (x *stage) shareValue(f *fleet.View) {
	for from := 0; from < len(x.waiting); {
		to, query := from+1, f.Task(x.waiting[from].ref).Query()
		for to < len(x.waiting) && f.Task(x.waiting[to].ref).Query() == query {
			to++
		}
		part := x.tasks / float64(to-from)
		for ; from < to; from++ {
			x.waiting[from].part = part
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
	c.formed, c.n = true, 0
	if len(x.waiting) == 0 {
		return
	}
	y := &r.machines.groups[g]
	price := y.price
	for n := 1; n < y.free && price > y.least; n++ {
		price = max(price*idleness, y.least)
	}
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
// each other, from the first that can be in time in a batch of that size.
func (x *stage) formPlain(r *Rule, now serving.Time, c *candidate, g int, k int32, price float64) {
	a, o := &r.apps[x.app], &r.machines.groups[g].options[k]
	pace := &r.machines.paces[r.machines.groups[g].device]
	i, n, tried := 0, len(x.waiting), 0
	loss := x.right * (1 - o.quality)
	limit := min(o.limit, n)
	for b := 1; ; b = min(more(b), limit) {
		t := o.seconds[b]
		for i < n && x.waiting[i].left < t {
			i++
		}
		if i+b > n {
			if b = n - i; b <= tried {
				return
			}
			t = o.seconds[b]
		}
		gain := x.lost[i] - x.lost[i+b] - float64(b)*loss - price*t - r.blocks(g, t)
		if len(x.next) == 0 && x.tasks <= 1 {
			gain += float64(b) * x.value
		} else {
			for at := i; at < i+b; at++ {
				gain += x.waiting[at].part * x.brings(a, x.waiting[at].due-t)
			}
		}
		if a.graph.Len() == 1 {
			gain -= x.value * float64(b) * pace.risk(x.waiting[i].left, x.waiting[i+b-1].left, t)
		}
		if score := scoreOf(gain, t, typicalShare*a.slo); c.n == 0 || score > c.score {
			c.option, c.n, c.items, c.first, c.gain, c.score = k, b, b, i, gain, score
			c.edge = now.Add(time.Duration((x.waiting[i].left - o.seconds[min(b+1, o.limit)]) * 1e9))
			if b == o.limit {
				c.edge = now // nothing can join
			}
		}
		if tried = b; b >= limit || i+b >= n {
			return
		}
	}
}
