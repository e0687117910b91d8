package fluid

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// mostClasses is into how many classes the sizes of an app's queries are cut. Those that do not differ are merged.
const mostClasses = 5

// readApps fills in the demands.
func (m *problem) readApps() {
	rates := capacity.Rates(m.r, 1)
	m.apps = make([]app, len(m.spec.Apps))
	for a := range m.apps {
		x := &m.spec.Apps[a]
		y := app{
			rate: rates[a], weight: x.Weight, allowed: 1, most: math.MaxInt, least: x.MinInstances, closed: x.Closed,
		}
		if x.MaxInstances > 0 {
			y.most = x.MaxInstances
		}
		if best := m.spec.BestAccuracy(serving.AppID(a)); x.AccuracyTarget > 0 && best > 0 {
			y.allowed = max(1-x.AccuracyTarget/best, 0)
		}
		y.classes = classes(m.r.Mix(serving.AppID(a)), nil)
		m.apps[a] = y
		if !y.closed {
			m.worth += y.weight * y.rate
		}
	}
	m.worth = max(m.worth, math.SmallestNonzeroFloat64)
}

// classes cuts sizes into classes of about equal work, the largest size a class of its own, and above each of some
// sizes.
func classes(mix *serving.Mix, above []int) (out []class) {
	total := mix.Mean()
	last := mix.Classes() - 1
	done := 0.0
	var now class
	flush := func() {
		if now.share > 0 {
			now.items /= now.share
			out = append(out, now)
		}
		now = class{}
	}
	for i := range mix.Classes() {
		items, share := mix.Class(i)
		if i == last || slices.ContainsFunc(above, func(size int) bool { return now.size <= size && size < items }) {
			flush()
		}
		now.share += share
		now.items += share * float64(items)
		now.size = items
		if done += share * float64(items); done >= total*float64(len(out)+1)/(mostClasses-1) {
			flush()
		}
	}
	flush()
	return out
}

// mergeClasses joins neighbouring classes of an app that all machines serve at the same rates.
func (m *problem) mergeClasses(a serving.AppID) {
	list := m.apps[a].classes
	for c := len(list) - 1; c > 0; c-- {
		same := true
		m.eachOption(a, func(o *option) { same = same && math.Abs(o.rates[c]-o.rates[c-1]) <= sameRate*o.rates[c] })
		if !same {
			continue
		}
		x, y := &list[c-1], &list[c]
		share := x.share + y.share
		*x = class{share, y.size, (x.share*x.items + y.share*y.items) / share}
		list = slices.Delete(list, c, c+1)
		m.eachOption(a, func(o *option) { o.rates = slices.Delete(o.rates, c-1, c) })
	}
	m.apps[a].classes = list
}

// sameRate is the relative difference up to which two rates are the same.
const sameRate = 0.02

// eachOption calls do for the options of an app that the program may use.
func (m *problem) eachOption(a serving.AppID, do func(o *option)) {
	for k := range m.kinds {
		for j := range m.kinds[k].options {
			if o := &m.kinds[k].options[j]; o.rates != nil && m.stages[o.stage].app == a {
				do(o)
			}
		}
	}
}

// readStages splits the objectives: a stage's part of the time is in proportion to its run time on the longest path
// that leads through it.
func (m *problem) readStages() {
	m.stages = make([]stage, len(m.spec.Stages))
	for a := range m.spec.Apps {
		x := &m.spec.Apps[a]
		id := serving.AppID(a)
		g := pipeline.New(m.spec, id)
		objective := x.SLO.Latency - x.Slack
		fans := g.MeanItems()
		items := func(s serving.StageID) int {
			return max(int(math.Round(fans[g.Position(s)]*float64(m.apps[a].classes[0].size))), 1)
		}
		typical := paths(g, func(s serving.StageID) float64 { return m.runTime(s, items(s), true) })
		fastest := paths(g, func(s serving.StageID) float64 { return m.runTime(s, items(s), false) })
		if slices.ContainsFunc(fastest, func(p onPath) bool { return p.path > float64(objective) }) {
			// Not even the smallest query is in time with all its items. Its stages are as if it had one.
			typical = paths(g, func(s serving.StageID) float64 { return m.runTime(s, 1, true) })
			fastest = paths(g, func(s serving.StageID) float64 { return m.runTime(s, 1, false) })
		}
		for at, fan := range fans {
			s := g.Stage(at)
			t, f := typical[at], fastest[at]
			m.stages[s] = stage{
				app: id, fan: fan, within: time.Duration(float64(objective) * t.own / t.path),
				longest: objective - time.Duration(f.path-f.own),
			}
			m.stages[s].within = min(m.stages[s].within, m.stages[s].longest)
		}
	}
}

// onPath is the length of a stage and that of the longest path through it.
type onPath struct{ own, path float64 }

// paths returns by position the lengths of an app's stages and of the longest paths through them.
func paths(g *pipeline.Graph, length func(serving.StageID) float64) []onPath {
	out, own := make([]onPath, g.Len()), make([]float64, g.Len())
	for k := range own {
		own[k] = max(length(g.Stage(k)), 1)
	}
	before, behind := dag.Around(g.Following(), own)
	for k := range out {
		out[k] = onPath{own[k], before[k] + own[k] + behind[k]}
	}
	return out
}

// runTime is how long some items take at a stage, in ns, spread over the fastest machines: with the variant in the
// middle of its ladder, or with the fastest one.
func (m *problem) runTime(s serving.StageID, items int, typical bool) float64 {
	var all []time.Duration
	for _, v := range m.spec.Stages[s].Variants {
		if m.spec.Variants[v].Retired || m.broken[v] || m.spec.BelowFloor(v) {
			continue
		}
		least := profile.Unknown
		for k := range m.kinds {
			each := min((items+m.kinds[k].most-1)/max(m.kinds[k].most, 1), m.spec.Variants[v].MaxBatch)
			least = min(least, m.believed.Latency(v, m.kinds[k].device, max(each, 1), 1))
		}
		if least < profile.Unknown {
			all = append(all, least)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	if typical {
		return float64(all[len(all)/2])
	}
	return float64(all[0])
}
