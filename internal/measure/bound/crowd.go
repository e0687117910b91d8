package bound

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// crowd is the queries of an app by arrival. It says how many items can meet in a batch: a batch begins after the
// arrival of each of its queries and ends before their deadlines. So all of them arrive within the longest time to a
// deadline, less what the batch and the other stages take at least.
type crowd struct {
	graph   *pipeline.Graph
	queries []member
	classes []int         // of the program, that are the app's
	widest  time.Duration // the longest time to a deadline
	steady  bool          // queries stand for many: any number can meet
	// aside is by position in App.Stages the least time of the other stages on the way of a query.
	aside []time.Duration
	most  map[meeting][]float64
}

// member is a query of an app and the place of its class among the app's.
type member struct {
	arrived serving.Time
	items   []float64
	class   int
}

type meeting struct {
	stage  int
	within time.Duration
}

// findCrowds lists the queries by app.
func (p *program) findCrowds(queries []Query) {
	p.crowds = make([]crowd, len(p.w.Spec.Apps))
	for a := range p.crowds {
		x := &p.crowds[a]
		x.graph, x.most = pipeline.New(p.w.Spec, serving.AppID(a)), make(map[meeting][]float64)
		x.aside = p.w.aside(x.graph)
	}
	for c := range p.classes {
		x := &p.crowds[p.classes[c].app]
		p.classes[c].place = len(x.classes)
		x.classes = append(x.classes, c)
	}
	for i := range queries {
		q := &queries[i]
		if p.classOf[i] < 0 {
			continue
		}
		x := &p.crowds[q.App]
		x.queries = append(x.queries, member{q.Arrived, q.Items, p.classes[p.classOf[i]].place})
		x.widest = max(x.widest, q.Deadline.Sub(q.Arrived))
		x.steady = x.steady || q.Count > 0
	}
	for a := range p.crowds {
		slices.SortStableFunc(p.crowds[a].queries, func(a, b member) int { return cmp.Compare(a.arrived, b.arrived) })
	}
}

// meet returns by place of a class the most items that can be in a batch of a stage with a query of the class, if the
// batch takes at least took.
func (x *crowd) meet(stage int, took time.Duration) []float64 {
	within := x.widest - x.aside[stage] - took
	k := meeting{stage, within}
	if known, ok := x.most[k]; ok {
		return known
	}
	out := make([]float64, len(x.classes))
	x.most[k] = out
	if x.steady {
		for c := range out {
			out[c] = math.Inf(1)
		}
		return out
	}
	if within < 0 {
		return out // not even one
	}
	around(len(x.queries), within, func(k int) (serving.Time, float64) {
		return x.queries[k].arrived, x.queries[k].items[stage]
	}, func(k int, most float64) {
		c := x.queries[k].class
		out[c] = max(out[c], most)
	})
	return out
}

// around finds for each of n queries, by arrival, the most items of queries that arrive within a span of time that
// holds the query. query returns when one arrives, and its items.
func around(n int, within time.Duration, query func(k int) (serving.Time, float64), found func(k int, most float64)) {
	sum, to := 0.0, 0
	var ranges []reach // of falling sums, those that can still hold a query that comes
	for from := range n {
		arrived, items := query(from)
		for to < n {
			at, more := query(to)
			if at.Sub(arrived) > within {
				break
			}
			sum += more
			to++
		}
		for len(ranges) > 0 && ranges[len(ranges)-1].sum <= sum {
			ranges = ranges[:len(ranges)-1]
		}
		for ranges = append(ranges, reach{to, sum}); ranges[0].to <= from; {
			ranges = ranges[1:]
		}
		found(from, ranges[0].sum)
		sum -= items
	}
}

// reach is the sum of the items of queries that come before the query of a number.
type reach struct {
	to  int
	sum float64
}

// aside returns by stage the least time that the other stages on the way of a query take, of all ways through an app.
func (w *Model) aside(g *pipeline.Graph) []time.Duration {
	least := make([]time.Duration, g.Len())
	for at := range least {
		least[at] = -1
		for _, v := range w.Spec.Stages[g.Stage(at)].Variants {
			if t, ok := w.quickest(v); ok && (least[at] < 0 || t < least[at]) {
				least[at] = t
			}
		}
		least[at] = max(least[at], 0)
	}
	return others(g, least)
}

// others returns by stage the length of the longest way through it, less its own.
func others(g *pipeline.Graph, length []time.Duration) []time.Duration {
	before, behind := dag.Around(g.Following(), length)
	for at := range before {
		before[at] += behind[at]
	}
	return before
}

// quickest returns the least time of a batch of one item of a variant on any device that has room for it.
func (w *Model) quickest(v serving.VariantID) (best time.Duration, ok bool) {
	for _, k := range w.kinds() {
		for _, u := range k.uses {
			if !w.fits(v, u.device) || !w.fits(v, k.device) {
				continue
			}
			if t := w.least(v, u.device, 1, 1); t >= 0 && (!ok || t < best) {
				best, ok = t, true
			}
		}
	}
	return best, ok
}

// least returns a time that a batch takes at least: its mean, or where times scatter one that fewer batches than
// rarest fall below; -1 for what cannot run.
func (w *Model) least(v serving.VariantID, d serving.DeviceTypeID, items, n int) time.Duration {
	mean, ok := w.Time(v, d, items, n)
	switch {
	case !ok || mean <= 0:
		return -1
	case w.Chance == nil:
		return mean
	}
	for part := 1.0; part > 0; part -= leastStep {
		if t := time.Duration(part * float64(mean)); w.Chance(v, d, items, n, t-1) <= rarest {
			return t
		}
	}
	return 0
}

const (
	rarest    = 1e-5
	leastStep = 0.05
)

// findCrowding tells queries apart by how many items of their app come at about the same time: within a half, and
// within an eighth, of the app's objective. Some queries come alone where others come in clumps.
func (p *program) findCrowding(queries []Query) {
	p.crowded = make([]int, len(queries))
	byApp := make([][]int, len(p.w.Spec.Apps))
	for i := range queries {
		byApp[queries[i].App] = append(byApp[queries[i].App], i)
	}
	for a, list := range byApp {
		if len(p.w.Spec.Apps[a].Stages) > 1 {
			continue // their programs are large without
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(queries[a].Arrived, queries[b].Arrived) })
		for _, part := range [...]time.Duration{2, 8} {
			within := p.w.Spec.Apps[a].SLO.Latency / part
			around(len(list), within, func(k int) (serving.Time, float64) {
				return queries[list[k]].Arrived, queries[list[k]].Items[0]
			}, func(k int, most float64) {
				p.crowded[list[k]] = p.crowded[list[k]]*crowdings + int(2*math.Log2(max(most, 1)))
			})
		}
	}
}

// crowdings is more than twice the binary logarithm of any number of items.
const crowdings = 128

// crowding returns a number that queries share which are equally crowded.
func (p *program) crowding(query int) int {
	if p.crowded == nil {
		return 0
	}
	return p.crowded[query]
}
