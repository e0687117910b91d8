package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const (
	// rateWindow is over how long arrivals are counted. What waits adds to them at once, so that bursts count when they
	// come.
	rateWindow = time.Second
	// mostClasses is into how many classes of size the tasks of a stage are divided, pieces how many quantiles of sizes
	// they are made of.
	mostClasses, pieces = 12, 64
	// classesEvery is how often the classes are made anew.
	classesEvery = time.Second
	// mostCounted bounds the waiting tasks whose sizes are looked at. The others count as the mean of these.
	mostCounted = 512
)

// observe counts what arrives and what waits, by stage and class.
func (r *Rule) observe(v *route.View) {
	anew := r.prices.outdated || v.Now >= r.prices.classesAt.Add(classesEvery)
	if anew {
		r.prices.classesAt = v.Now
	}
	for a := range r.apps {
		x := &r.apps[a]
		rate := v.Monitor.Rate(v.Now, x.id, rateWindow)
		for at := range x.graph.Len() {
			s := &r.stages[x.graph.Stage(at)]
			if anew {
				s.classify(v, r, at == 0)
				s.measure(r)
			}
			s.count(v)
			s.followFirsts(v.Fleet, v.Now)
			s.rate = 0
			if at == 0 {
				for c := range s.classes {
					s.rate += s.classes[c].share * rate * s.classes[c].mean
					s.classes[c].rate = s.classes[c].share * rate * s.tasks
				}
				continue
			}
			s.rate = r.stages[x.graph.Stage(0)].rate * x.items[at]
		}
	}
	if anew {
		r.followMissed(v)
		r.keepTargets(v)
		r.weighServing()
		r.sortUrgent()
	}
}

// classify divides the sizes of a stage's tasks into classes of about the same number: at the first stage of an app by
// the sizes that were seen or, before any, those that are expected; at later ones there is one class, of the mean size.
func (x *stage) classify(v *route.View, r *Rule, source bool) {
	spec := v.Fleet.Spec()
	a := &r.apps[x.app]
	mix := &spec.Apps[a.id].Mix
	x.classes = x.classes[:0]
	if !source {
		mean := math.Max(1, r.stages[a.graph.Stage(0)].meanSize()*a.items[x.position]/x.reach/x.tasks)
		x.classes = append(x.classes, class{upTo: math.MaxInt, most: int(math.Ceil(mean)), mean: mean, share: 1})
		return
	}
	if edges := v.Monitor.SizeQuantiles(a.id, r.prices.edges[:]); edges > 0 {
		x.classesOf(r.prices.edges[:edges])
		return
	}
	x.divide(mix.Classes(), mix.Mean(), func(k int) (upTo int, mean, share float64) {
		n, p := mix.Class(k)
		return n, float64(n), p
	})
}

// classesOf makes classes from quantiles of sizes, ascending. The sizes between two quantiles are taken to lie evenly
// between them.
func (x *stage) classesOf(edges []int32) {
	part := 1 / float64(len(edges))
	piece := func(k int) (upTo int, mean, share float64) {
		mean = float64(edges[k])
		if k > 0 {
			mean = float64(edges[k-1]+edges[k]) / 2
		}
		return int(edges[k]), mean, part
	}
	total := 0.0
	for k := range edges {
		_, mean, _ := piece(k)
		total += mean * part
	}
	x.divide(len(edges), total, piece)
}

// divide makes classes of n pieces, ascending by size, that have about the same number of items: few large tasks take
// much of the machines' time, and how long each takes decides where it can run. mean is the items of a task.
func (x *stage) divide(n int, mean float64, piece func(k int) (upTo int, mean, share float64)) {
	sum, open := 0.0, false
	for k := range n {
		upTo, m, share := piece(k)
		if last := len(x.classes) - 1; last >= 0 && (open || x.classes[last].upTo == upTo) {
			c := &x.classes[last]
			c.mean = (c.mean*c.share + m*share) / (c.share + share)
			c.share += share
			c.upTo, c.most = upTo, upTo
		} else {
			x.classes = append(x.classes, class{upTo: upTo, most: upTo, mean: m, share: share})
		}
		sum += m * share
		open = sum < float64(len(x.classes))/mostClasses*mean-1e-9
	}
	x.classes[len(x.classes)-1].upTo = math.MaxInt
}

// tasksOf returns how many tasks of a class come, per second.
func (x *stage) tasksOf(c int) float64 { return x.rate * x.classes[c].share / x.meanSize() }

// meanSize returns the mean items of a task.
func (x *stage) meanSize() (mean float64) {
	for c := range x.classes {
		mean += x.classes[c].share * x.classes[c].mean
	}
	return mean
}

// count counts what waits at a stage and can be in time, by class. Late queries that are served all the same have no
// part in demand: they get the time that is left.
func (x *stage) count(v *route.View) {
	for c := range x.classes {
		x.classes[c].waits = 0
	}
	for k := range x.seconds {
		x.seconds[k].waits = 0
	}
	f := v.Fleet
	q := f.Central(x.id)
	x.waits = float64(q.Items())
	if q.Len() == 0 {
		return
	}
	late := f.Spec().Apps[x.app].Late == serving.ServeLate
	if len(x.classes) == 1 && !late && len(x.seconds) == 0 {
		x.classes[0].waits = float64(q.Len())
		return
	}
	n, items := 0, 0
	for ref := q.Head(); ref != fleet.Nil && n < mostCounted; ref = f.Next(ref) {
		t := f.Task(ref)
		c := x.classOf(t.Items())
		n++
		if k := x.kindOf(t); k >= 0 && k < len(x.seconds) {
			x.seconds[k].waits++
			x.waits--
			continue
		}
		if !late || t.LatestEnd().Sub(v.Now).Seconds() >= x.classes[c].least {
			x.classes[c].waits++
			items += t.Items()
		}
	}
	for c := range x.classes {
		x.classes[c].waits *= float64(q.Len()) / float64(n)
	}
	for k := range x.seconds {
		x.seconds[k].waits *= float64(q.Len()) / float64(n)
	}
	if late {
		x.waits = float64(items) * float64(q.Len()) / float64(n)
	}
}

// flow is how fast items come and wait to be served, in items/s: what waits counts as if it came within the objective.
func (x *stage) flow(a *app) float64 { return max(x.rate, x.waits/a.slo) }
