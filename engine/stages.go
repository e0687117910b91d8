package engine

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// flow follows a query through an app of several stages.
type flow struct {
	stages []passage // by position in App.Stages
	done   int
}

// passage is a query's progress at one stage.
type passage struct {
	edges int // incoming edges that have delivered
	// the stage works on; a join takes the most that any edge delivers, since its branches saw the same things
	items int32
	left  int     // tasks not yet done
	done  bool    // or passed over
	right float64 // accuracy of the variants that served it, weighted by their items
	total float64 // those items
	sent  []int32
	last  StageTime // of the part that ended last
}

func (e *Engine) newFlow(stages int) int32 {
	var at int32
	if n := len(e.spare); n > 0 {
		at = e.spare[n-1]
		e.spare = e.spare[:n-1]
	} else {
		e.flows = append(e.flows, flow{})
		at = int32(len(e.flows) - 1)
	}
	f := &e.flows[at]
	if cap(f.stages) < stages {
		f.stages = make([]passage, stages)
	}
	f.stages = f.stages[:stages]
	for s := range f.stages {
		f.stages[s] = passage{sent: f.stages[s].sent[:0]}
	}
	f.stages[0].left = 1
	f.done = 0
	return at
}

// taskDone advances a query whose task ended well, and reports whether the whole query is served. emitted are the items
// the task sends along each edge of its stage, or nil. The query's accuracy is the product over its stages of the mean
// over a stage's items of the accuracy of the variants.
func (e *Engine) taskDone(r fleet.Ref, t *fleet.Task, b *fleet.Batch, emitted []int32) bool {
	rec := &e.records[r]
	accuracy := e.spec.Variants[b.Variant].Accuracy
	if rec.flow < 0 {
		rec.accuracy = accuracy
		return true
	}
	f := &e.flows[rec.flow]
	s := t.Stage
	p := &f.stages[e.place[s]]
	edges := e.spec.Stages[s].Next
	for len(p.sent) < len(edges) {
		p.sent = append(p.sent, 0)
	}
	for k := range edges {
		if emitted != nil {
			p.sent[k] += emitted[k]
		} else {
			p.sent[k] += int32(math.Round(float64(t.Items) * edges[k].FanOut))
		}
	}
	p.right += accuracy * float64(t.Items)
	p.total += float64(t.Items)
	p.last = StageTime{
		Stage: s, Variant: b.Variant, Items: p.items, Batch: int32(b.Items), Ready: t.Ready, Started: b.Started,
		Done: e.now,
	}
	p.left--
	if p.left > 0 {
		return false
	}
	rec.accuracy *= p.right / p.total
	e.leave(r, s)
	return e.flows[rec.flow].done == len(e.spec.Apps[rec.query.App].Stages)
}

// stageTimes are those of the stages that a query went through: none for an app of one stage, whose decision says it
// all.
func (e *Engine) stageTimes(r fleet.Ref) []StageTime {
	at := e.records[r].flow
	if at < 0 {
		return nil
	}
	first := len(e.times)
	for s := range e.flows[at].stages {
		if p := &e.flows[at].stages[s]; p.total > 0 {
			e.times = append(e.times, p.last)
		}
	}
	return e.times[first:len(e.times):len(e.times)]
}

// leave hands the result of a finished stage to the stages it feeds; a stage that is sent nothing is passed over.
func (e *Engine) leave(r fleet.Ref, s serving.StageID) {
	f := &e.flows[e.records[r].flow]
	f.done++
	from := &f.stages[e.place[s]]
	from.done = true
	if at := e.records[r].lane; at >= 0 && e.streams.seats[s] >= 0 {
		e.proceed(at, s)
	}
	for k, edge := range e.spec.Stages[s].Next {
		to := &f.stages[e.place[edge.To]]
		to.edges++
		if k < len(from.sent) {
			to.items = max(to.items, from.sent[k])
		}
		if to.edges < e.spec.Stages[edge.To].Joins {
			continue
		}
		if to.items == 0 {
			e.leave(r, edge.To)
		} else {
			e.open(r, edge.To, to)
		}
		if e.records[r].ended {
			return
		}
	}
}

// mostTasks bounds the tasks that a query has at a stage.
const mostTasks = 256

// open makes the tasks of a stage whose input is complete: one for every item, so that they go to whichever instances
// are next and fill batches whatever their number; of more items than mostTasks several together, but no more than the
// largest batch that anything takes.
func (e *Engine) open(r fleet.Ref, s serving.StageID, p *passage) {
	largest := 1
	for _, i := range e.fleet.Live() {
		if i.Stage != s {
			continue
		}
		for _, l := range i.Variants {
			if l.Wanted {
				largest = max(largest, l.Limit)
			}
		}
	}
	largest = min(largest, int(p.items+mostTasks-1)/mostTasks)
	query := e.records[r].query
	left := p.items
	p.left = int((left + int32(largest) - 1) / int32(largest))
	for offset := int32(0); left > 0; {
		items := min(left, int32(largest))
		t := e.task(&query, s, items)
		t.Offset = offset
		if ok, why, _ := e.admissible(s, &t); !ok && !e.starts(s, why) && !e.planServes(&t) {
			e.end(r, serving.Failed, why)
			return
		}
		e.add(r, t)
		left -= items
		offset += items
	}
}
