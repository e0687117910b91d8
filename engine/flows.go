package engine

import (
	"fmt"
	"slices"

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
	kept    []keptAnswer      // by fleet.Ref of tasks that wait for better answers
}

// keptAnswer is the answer of a task to which a better one may come.
type keptAnswer struct {
	served
	there bool
}

// served is how a task was served.
type served struct {
	answer
	accuracy float64
	time     StageTime
	handed
}

// handed is what a task hands on, by the edges of its stage.
type handed struct {
	sent    []int32 // items; nil for its items times the edge's fan-out, rounded
	lengths []int32 // of the longest of them; nil where none is known
}

// handedBy returns what the k-th task of a batch hands on along so many edges.
func handedBy(in *Input, k, edges int) (h handed) {
	if edges > 0 && len(in.Emitted) >= (k+1)*edges {
		h.sent = in.Emitted[k*edges : (k+1)*edges]
	}
	if edges > 0 && len(in.Lengths) >= (k+1)*edges {
		h.lengths = in.Lengths[k*edges : (k+1)*edges]
	}
	return h
}

// flow is a query's progress through its app.
type flow struct {
	progress pipeline.Progress
	stages   []stageResult // by position in App.Stages
}

// stageResult is how a query was served at one stage.
type stageResult struct {
	right float64   // accuracy of the answers, weighted by their items
	total float64   // those items
	last  StageTime // of the task that ended last
	// length is that of the longest item that it was handed; 0 where none is known.
	length int32
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

// open begins to follow a query through the stages of its app.
func (f *flows) open(q *serving.Query) int32 {
	var at int32
	if n := len(f.free); n > 0 {
		at = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		f.list = append(f.list, flow{})
		at = int32(len(f.list) - 1)
	}
	x, stages := &f.list[at], f.graphs[q.App].Len()
	x.progress.Start(f.graphs[q.App], q.Items)
	if cap(x.stages) < stages {
		x.stages = make([]stageResult, stages)
	}
	x.stages = x.stages[:stages]
	clear(x.stages)
	x.stages[0].length = q.Length
	return at
}

// close ends that.
func (f *flows) close(at int32) { f.free = append(f.free, at) }

// items returns how many items a query has at a stage.
func (f *flows) items(at int32, s serving.StageID) int32 {
	p := &f.list[at].progress
	return p.Items(p.Graph().Position(s))
}

// length returns the length of the longest item that a query has at a stage; 0 for one that is not known.
func (f *flows) length(at int32, s serving.StageID) int32 {
	x := &f.list[at]
	return x.stages[x.progress.Graph().Position(s)].length
}

// over tells whether a query is through a stage: served there, or passed over.
func (f *flows) over(at int32, s serving.StageID) bool {
	p := &f.list[at].progress
	return p.Over(p.Graph().Position(s))
}

// newServed is how a batch serves a task.
func (f *flows) newServed(t *fleet.Task, i *fleet.Instance, b *fleet.Batch, accuracy float64, h handed) served {
	return served{answer: newAnswer(t, i, b), accuracy: accuracy, handed: h, time: StageTime{
		Stage: t.Stage(), Variant: b.Variant, Batch: int32(b.Items), Ready: t.ReadyAt(), Started: b.Started,
		Done: f.now,
	}}
}

// served counts a task that is through its stage. It returns what follows, which is nothing before the last task of the
// stage. The slice is valid until the next call.
func (f *flows) served(at int32, t *fleet.Task, how *served) []pipeline.Change {
	x := &f.list[at]
	k := x.progress.Graph().Position(t.Stage())
	r := &x.stages[k]
	r.right += how.accuracy * float64(t.Items())
	r.total += float64(t.Items())
	r.last = how.time
	r.last.Items, r.last.Length = x.progress.Items(k), r.length
	for e, n := range how.lengths {
		to := &x.stages[x.progress.Graph().Next(k)[e].To]
		to.length = max(to.length, n)
	}
	f.changes = x.progress.Served(k, int32(t.Items()), how.sent, f.changes[:0])
	return f.changes
}

// keep keeps the answer of a task that waits for a better one.
func (f *flows) keep(ref fleet.Ref, how *served) {
	for int(ref) >= len(f.kept) {
		f.kept = append(f.kept, keptAnswer{})
	}
	k := &f.kept[ref]
	*k = keptAnswer{*how, true}
	k.sent, k.lengths = slices.Clone(how.sent), slices.Clone(how.lengths)
}

// keeps reports whether a task has an answer that has not gone on yet.
func (f *flows) keeps(ref fleet.Ref) bool { return int(ref) < len(f.kept) && f.kept[ref].there }

// take returns that answer. It is valid until the next one is kept.
func (f *flows) take(ref fleet.Ref) *served {
	f.kept[ref].there = false
	return &f.kept[ref].served
}

// forget forgets it.
func (f *flows) forget(ref fleet.Ref) {
	if f.keeps(ref) {
		f.kept[ref].there = false
	}
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
