package engine

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// flows follow queries through apps of several stages.
type flows struct {
	*world
	list     []flow
	free     []int32
	position []int // by stage: in App.Stages
}

// flow is a query's progress through its app.
type flow struct {
	stages []stageProgress // by position in App.Stages
	done   int             // stages
}

// stageProgress is a query's progress at one stage.
type stageProgress struct {
	edges int // incoming edges that have delivered
	// items the stage works on; a join takes the most that any edge delivers, since its branches saw the same things
	items int32
	left  int     // tasks not yet done
	done  bool    // or passed over
	right float64 // accuracy of the variants that served it, weighted by their items
	total float64 // those items
	sent  []int32
	last  StageTime // of the task that ended last
}

func newFlows(w *world) *flows {
	f := &flows{world: w}
	f.grow()
	return f
}

// grow takes up the stages of a spec that are new.
func (f *flows) grow() {
	f.position = lengthened(f.position, len(f.spec.Stages))
	for _, a := range f.spec.Apps {
		for at, s := range a.Stages {
			f.position[s] = at
		}
	}
}

// open begins to follow a query of so many items through so many stages.
func (f *flows) open(stages int, items int32) int32 {
	var at int32
	if n := len(f.free); n > 0 {
		at = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		f.list = append(f.list, flow{})
		at = int32(len(f.list) - 1)
	}
	x := &f.list[at]
	if cap(x.stages) < stages {
		x.stages = make([]stageProgress, stages)
	}
	x.stages = x.stages[:stages]
	for s := range x.stages {
		x.stages[s] = stageProgress{sent: x.stages[s].sent[:0]}
	}
	x.stages[0].items, x.stages[0].left = items, 1
	x.done = 0
	return at
}

// close ends that.
func (f *flows) close(at int32) { f.free = append(f.free, at) }

// stage returns the progress of a flow at a stage. The pointer is valid until the next flow is opened.
func (f *flows) stage(at int32, s serving.StageID) *stageProgress {
	return &f.list[at].stages[f.position[s]]
}

// served counts a task that ended well, and tells whether it was the last of its stage. sent are the items that it
// sends along each edge of the stage; nil for its items times the edge's fan-out, rounded.
func (f *flows) served(at int32, t *fleet.Task, b *fleet.Batch, sent []int32) bool {
	p := f.stage(at, t.Stage())
	edges := f.spec.Stages[t.Stage()].Next
	for len(p.sent) < len(edges) {
		p.sent = append(p.sent, 0)
	}
	for k := range edges {
		if sent != nil {
			p.sent[k] += sent[k]
		} else {
			p.sent[k] += int32(math.Round(float64(t.Items()) * edges[k].FanOut))
		}
	}
	p.right += f.spec.Variants[b.Variant].Accuracy * float64(t.Items())
	p.total += float64(t.Items())
	p.last = StageTime{
		Stage: t.Stage(), Variant: b.Variant, Items: p.items, Batch: int32(b.Items), Ready: t.ReadyAt(),
		Started: b.Started, Done: f.now,
	}
	p.left--
	return p.left == 0
}

// pass notes that a stage is done, or is passed over.
func (f *flows) pass(at int32, s serving.StageID) {
	f.list[at].done++
	f.stage(at, s).done = true
}

// deliver counts what a finished stage sends along one of its edges, and tells whether the input of the stage that the
// edge leads to is complete.
func (f *flows) deliver(at int32, from serving.StageID, edge int) bool {
	e := f.spec.Stages[from].Next[edge]
	p, to := f.stage(at, from), f.stage(at, e.To)
	to.edges++
	if edge < len(p.sent) {
		to.items = max(to.items, p.sent[edge])
	}
	return to.edges >= f.spec.Stages[e.To].Joins
}

// complete tells whether the query is through all stages.
func (f *flows) complete(at int32) bool { return f.list[at].done == len(f.list[at].stages) }

// times appends the times of the stages that a query went through to out.
func (f *flows) times(at int32, out []StageTime) []StageTime {
	for s := range f.list[at].stages {
		if p := &f.list[at].stages[s]; p.total > 0 {
			out = append(out, p.last)
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
