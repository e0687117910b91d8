package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const (
	// rateWindow is over how long arrivals are counted. What waits adds to them at once, so that bursts count when they
	// come.
	rateWindow = time.Second
	// mostClasses is into how many classes of size the tasks of a stage are divided.
	mostClasses = 12
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
			}
			s.count(v.Fleet)
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
		x.classes = append(x.classes, class{upTo: math.MaxInt, mean: mean, share: 1})
		return
	}
	if edges := v.Monitor.SizeQuantiles(a.id, r.prices.edges[:]); edges > 0 {
		x.classesOf(r.prices.edges[:edges])
		return
	}
	sum, items, share := 0.0, 0.0, 0.0
	for k := range mix.Classes() {
		n, p := mix.Class(k)
		sum, items, share = sum+p, items+p*float64(n), share+p
		if k == mix.Classes()-1 || sum >= float64(len(x.classes)+1)/mostClasses-1e-9 {
			x.classes = append(x.classes, class{upTo: n, mean: items / share, share: share})
			items, share = 0, 0
		}
	}
	x.classes[len(x.classes)-1].upTo = math.MaxInt
}

// classesOf makes classes from quantiles of sizes, ascending. Equal ones become one class.
func (x *stage) classesOf(edges []int32) {
	part := 1 / float64(len(edges))
	for k, e := range edges {
		n := len(x.classes)
		// The sizes between two quantiles are taken to lie evenly between them.
		mean := float64(e)
		if k > 0 {
			mean = float64(edges[k-1]+e) / 2
		}
		if n > 0 && x.classes[n-1].upTo == int(e) {
			c := &x.classes[n-1]
			c.mean = (c.mean*c.share + float64(e)*part) / (c.share + part)
			c.share += part
			continue
		}
		x.classes = append(x.classes, class{upTo: int(e), mean: mean, share: part})
	}
	x.classes[len(x.classes)-1].upTo = math.MaxInt
}

// meanSize returns the mean items of a task.
func (x *stage) meanSize() (mean float64) {
	for c := range x.classes {
		mean += x.classes[c].share * x.classes[c].mean
	}
	return mean
}

// count counts what waits at a stage, by class.
func (x *stage) count(f *fleet.View) {
	for c := range x.classes {
		x.classes[c].waits = 0
	}
	q := f.Central(x.id)
	x.waits = float64(q.Items())
	if q.Len() == 0 {
		return
	}
	if len(x.classes) == 1 {
		x.classes[0].waits = float64(q.Len())
		return
	}
	n := 0
	for ref := q.Head(); ref != fleet.Nil && n < mostCounted; ref = f.Next(ref) {
		x.classes[x.classOf(f.Task(ref).Items())].waits++
		n++
	}
	for c := range x.classes {
		x.classes[c].waits *= float64(q.Len()) / float64(n)
	}
}

// flow is how fast items come and wait to be served, in items/s: what waits counts as if it came within the objective.
func (x *stage) flow(a *app) float64 { return max(x.rate, x.waits/a.slo) }
