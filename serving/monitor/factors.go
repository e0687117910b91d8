package monitor

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// FactorView reads how the content of queries changes the work of a graph (Scrooge §2, §3.5): by edge the scaling
// factor, the items sent for each item served, and by stage the ballooning factor, the run time of batches relative to
// the believed one.
//
// Factors are counted in tenths of a second. Plans are made with a mean of five seconds. Where the newest tenths, as
// few as hold three observations, are above that mean by more than chance, they count instead, for ten seconds. Too
// little capacity costs answers, too much only money. So a step up shows within a second, and content that comes and
// goes is planned for once, at its high level.
type FactorView struct {
	edges  [][]ratio // by stage, then edge
	stages []ratio
	spec   *serving.Spec
}

// Factors is a FactorView that counts.
type Factors struct{ FactorView }

const (
	// LeastChange is the relative difference of a factor from the planned one that is worth a plan.
	LeastChange = 0.25
	// leastFan is the part of its configured fan-out that an edge is planned with at least. Items may follow although
	// none were sent of late, and must then find the stage served.
	leastFan = 0.05
	// leastBallooning is the excess over the believed time that counts as none: beliefs are averages.
	leastBallooning = 0.05
)

// NewFactors returns the factors of spec, without observations. spec is kept.
func NewFactors(spec *serving.Spec) *Factors {
	f := &Factors{}
	f.Grow(spec, spec.FreshSince(&serving.Spec{}).Stages)
	return f
}

// Grow replaces spec by one that has grown. It keeps the observations of all stages but the fresh ones.
func (f *Factors) Grow(spec *serving.Spec, fresh []serving.StageID) {
	f.spec = spec
	f.stages = serving.Cleared(f.stages, fresh)
	f.edges = serving.Renew(f.edges, fresh, func(s serving.StageID) []ratio {
		edges := make([]ratio, len(spec.Stages[s].Next))
		for k := range edges {
			edges[k].counts = true
		}
		return edges
	})
}

// AddTask counts one task of a batch of a stage, by its position in the batch from 0. sent holds the items that each
// task of the batch sends along each edge of the stage, task by task, edges in the order of Stage.Next. A task beyond
// its end sends the configured number. sent is not kept.
func (f *Factors) AddTask(now serving.Time, s serving.StageID, task, items int, sent []int32) {
	edges := f.spec.Stages[s].Next
	for k := range edges {
		n := float64(items) * edges[k].FanOut
		if at := task*len(edges) + k; at < len(sent) {
			n = float64(sent[at])
		}
		f.AddItems(now, s, k, float64(items), n)
	}
}

// AddItems counts the items sent along an edge of a stage for so many items served there.
func (f *Factors) AddItems(now serving.Time, s serving.StageID, edge int, items, sent float64) {
	f.edges[s][edge].add(now, items, sent)
}

// AddBatch counts a batch with its believed and its measured time. Without a belief it counts nothing.
func (f *Factors) AddBatch(now serving.Time, s serving.StageID, believed, took time.Duration) {
	if took > 0 && believed > 0 && believed < math.MaxInt64/4 {
		f.stages[s].add(now, believed.Seconds(), took.Seconds())
	}
}

// Scaling is the factor of an edge to plan with; the configured one while there is no observation.
func (f *FactorView) Scaling(now serving.Time, s serving.StageID, edge int) float64 {
	expected := f.spec.Stages[s].Next[edge].FanOut
	x, _, known := f.edges[s][edge].value(now)
	if !known {
		return expected
	}
	return max(x, leastFan*expected)
}

// Ballooning is the factor of a stage to plan with, at least 1: beliefs may be percentiles, and then most batches are
// faster. Without batches it is 1, so that a stage that was given up as too slow is tried again.
func (f *FactorView) Ballooning(now serving.Time, s serving.StageID) float64 {
	if x, _, _ := f.stages[s].value(now); x > 1+leastBallooning {
		return x
	}
	return 1
}

// Changed reports whether a factor differs from the one that a plan was made with, by more than chance and by the
// relative difference least (0 means LeastChange). fans is by stage, then edge; nil means as configured. ballooning is
// by stage; nil means 1.
func (f *FactorView) Changed(now serving.Time, fans [][]float64, ballooning []float64, least float64) bool {
	if least <= 0 {
		least = LeastChange
	}
	for s := range f.stages {
		id := serving.StageID(s)
		if f.spec.Apps[f.spec.Stages[s].App].Closed {
			continue
		}
		planned := 1.0
		if s < len(ballooning) {
			planned = ballooning[s]
		}
		r := &f.stages[s]
		if r.changed(now, planned, least) && f.Ballooning(now, id) != planned {
			return true
		}
		if planned > 1+least && f.Ballooning(now, id) == 1 && r.silent(now) {
			return true // perhaps no query is believed to be in time
		}
		for k, e := range f.spec.Stages[s].Next {
			planned := e.FanOut
			if s < len(fans) && k < len(fans[s]) {
				planned = fans[s][k]
			}
			if f.edges[s][k].changed(now, planned, least) && f.Scaling(now, id, k) != planned {
				return true
			}
		}
	}
	return false
}

// Scalings are the factors of all edges, by stage and in the order of Stage.Next; nil when all are as configured.
// Stages without edges have none. The slices are new.
func (f *FactorView) Scalings(now serving.Time) [][]float64 {
	out, differs := make([][]float64, len(f.stages)), false
	for s := range out {
		for k, e := range f.spec.Stages[s].Next {
			x := f.Scaling(now, serving.StageID(s), k)
			differs = differs || x != e.FanOut
			out[s] = append(out[s], x)
		}
	}
	if !differs {
		return nil
	}
	return out
}

// Balloonings are the factors of all stages, by stage; nil when all are 1. The slice is new.
func (f *FactorView) Balloonings(now serving.Time) []float64 {
	out, differs := make([]float64, len(f.stages)), false
	for s := range out {
		out[s] = f.Ballooning(now, serving.StageID(s))
		differs = differs || out[s] != 1
	}
	if !differs {
		return nil
	}
	return out
}
