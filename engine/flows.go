package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// flows follow queries through apps of several stages.
type flows struct {
	*world
	graphs  []*pipeline.Graph // by app
	list    []flow
	free    []int32
	changes []pipeline.Change // after the task that ended last
}

// flow is a query's progress through its app.
type flow struct {
	progress pipeline.Progress
	stages   []stageResult // by position in App.Stages
}

// stageResult is how a query was served at one stage.
type stageResult struct {
	right float64   // accuracy of the variants that served it, weighted by their items
	total float64   // those items
	last  StageTime // of the task that ended last
}

func newFlows(w *world) *flows {
	f := &flows{world: w}
	f.grow(w.spec.FreshSince(&serving.Spec{}).Apps)
	return f
}

// grow takes up the apps of a spec that are fresh.
func (f *flows) grow(fresh []serving.AppID) {
	f.graphs = serving.Renew(f.graphs, fresh, func(a serving.AppID) *pipeline.Graph { return pipeline.New(f.spec, a) })
}

// open begins to follow a query of so many items through the stages of an app.
func (f *flows) open(a serving.AppID, items int32) int32 {
	var at int32
	if n := len(f.free); n > 0 {
		at = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		f.list = append(f.list, flow{})
		at = int32(len(f.list) - 1)
	}
	x, stages := &f.list[at], f.graphs[a].Len()
	x.progress.Start(f.graphs[a], items)
	if cap(x.stages) < stages {
		x.stages = make([]stageResult, stages)
	}
	x.stages = x.stages[:stages]
	clear(x.stages)
	return at
}

// close ends that.
func (f *flows) close(at int32) { f.free = append(f.free, at) }

// items returns how many items a query has at a stage.
func (f *flows) items(at int32, s serving.StageID) int32 {
	p := &f.list[at].progress
	return p.Items(p.Graph().Position(s))
}

// over tells whether a query is through a stage: served there, or passed over.
func (f *flows) over(at int32, s serving.StageID) bool {
	p := &f.list[at].progress
	return p.Over(p.Graph().Position(s))
}

// served counts a task that ended well. sent are the items that it sends along each edge of its stage; nil for its
// items times the edge's fan-out, rounded. It returns what follows, which is nothing before the last task of the stage.
// The slice is valid until the next call.
func (f *flows) served(at int32, t *fleet.Task, b *fleet.Batch, sent []int32) []pipeline.Change {
	x := &f.list[at]
	k := x.progress.Graph().Position(t.Stage())
	r := &x.stages[k]
	r.right += f.spec.Variants[b.Variant].Accuracy * float64(t.Items())
	r.total += float64(t.Items())
	r.last = StageTime{
		Stage: t.Stage(), Variant: b.Variant, Items: x.progress.Items(k), Batch: int32(b.Items), Ready: t.ReadyAt(),
		Started: b.Started, Done: f.now,
	}
	f.changes = x.progress.Served(k, int32(t.Items()), sent, f.changes[:0])
	return f.changes
}

// stageAt returns the stage that a change of a query's progress is about.
func (f *flows) stageAt(at int32, c pipeline.Change) serving.StageID {
	return f.list[at].progress.Graph().Stage(c.Stage)
}

// accuracy returns the mean accuracy with which a query was served at a stage that it was not passed over at.
func (f *flows) accuracy(at int32, s serving.StageID) float64 {
	x := &f.list[at]
	r := &x.stages[x.progress.Graph().Position(s)]
	return r.right / r.total
}

// complete tells whether the query is through all stages.
func (f *flows) complete(at int32) bool { return f.list[at].progress.Done() }

// times appends the times of the stages that a query went through to out.
func (f *flows) times(at int32, out []StageTime) []StageTime {
	for s := range f.list[at].stages {
		if r := &f.list[at].stages[s]; r.total > 0 {
			out = append(out, r.last)
		}
	}
	return out
}

// check reports a flow that is of no use to anybody, or is used twice.
func (f *flows) check(inUse int) error {
	if len(f.list)-len(f.free) != inUse {
		return fmt.Errorf("%d queries are followed through their stages, %d know of it", len(f.list)-len(f.free), inUse)
	}
	return nil
}
