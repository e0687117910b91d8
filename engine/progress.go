package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// batchEnded hands the tasks of a batch that has ended on: to the next stages, to their clients, or to wait once more.
// It tells whether any of them ended after its deadline.
func (q *queries) batchEnded(i *fleet.Instance, b *fleet.Batch, in *Input) (late bool) {
	edges := len(q.spec.Stages[i.Stage()].Next)
	k, sure := 0, in.Confidence
	if len(sure) != b.Items {
		sure = nil
	}
	var broken *suspicion
	if in.Result == Broken || in.Result == Exceeded && b.Items == 1 {
		broken = &suspicion{on: i.ID()}
	}
	q.used(b, in.Took)
	for ref := b.Head; ref != fleet.Nil; k++ {
		next := q.fleet.Next(ref)
		late = late || q.now > q.fleet.Task(ref).Deadline()
		switch {
		case broken != nil:
			q.failed(ref, i, b, broken)
		case in.Result == Exceeded:
			q.again(ref)
		default:
			h := handedBy(in, k, edges)
			n := min(q.fleet.Task(ref).Items(), len(sure))
			own := sure[:n]
			sure = sure[n:]
			if !q.goesOn(ref, i, b, own, h) {
				q.served(ref, i, b, h)
			}
		}
		ref = next
	}
	return late
}

// served advances the query of a task that ended well. Of one whose first answer has gone on meanwhile nothing counts.
func (q *queries) served(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, h handed) {
	q.faults.served(ref, i.ID())
	t := *q.fleet.Task(ref) // tasks of the next stages may move it
	r := t.Record()
	switch rec := q.records.at(r); {
	case rec.ended:
	case rec.flow < 0:
		if last := q.answered(rec, &t, b.Variant); last {
			x := newAnswer(&t, i, b)
			if t.Of() > 1 {
				x = rec.kept // of most of its items
			}
			q.finish(r, Answered, x)
		}
	case t.Hint() == 0 || q.flows.keeps(ref):
		rec.again = rec.again || t.Hint() > 0
		how := q.flows.newServed(&t, i, b, q.accuracyOf(&t, b.Variant), h)
		q.through(r, &t, &how, Answered)
	}
	q.release(ref)
}

// again lets a task wait once more whose batch was too large for the device's memory. It is neither its fault nor the
// instance's, and every such batch lowers a limit, so that it does not count as an attempt.
func (q *queries) again(ref fleet.Ref) {
	if q.records.at(q.fleet.Task(ref).Record()).ended {
		q.release(ref)
		return
	}
	q.retry(ref)
}

// failed sends a task whose batch broke back to wait. From now on it runs alone: one bad query must not fail those that
// happen to share its batch. It runs on another instance, if there is one, since the first may be what is bad. If it
// was alone already, and there is no other instance or it has broken before, it has failed.
func (q *queries) failed(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, broken *suspicion) {
	r := q.fleet.Task(ref).Record()
	attempts := q.fleet.Attempted(ref)
	before := q.faults.isSuspect(ref)
	q.faults.broke(ref)
	if q.records.at(r).ended {
		q.release(ref)
		return
	}
	var other *fleet.Instance
	if !q.streams.ordered(i.Stage()) {
		other = q.faults.elsewhere(ref, i)
	}
	if attempts >= q.attempts || b.Tasks == 1 && (before || other == nil) {
		d := q.giveUp(ref, serving.Failed, ModelFailed)
		if d.Outcome == serving.Failed {
			d.Variant, d.Stage = b.Variant, i.Stage()
		}
		return
	}
	q.fleet.Isolate(ref)
	q.faults.suspect(ref, broken)
	q.retry(ref)
	if other != nil {
		if other.RestUntil() > 0 {
			q.endRest(other)
		}
		q.fleet.Assign(ref, other, q.now)
		q.agenda.touch(other)
	}
}

// lost has everything that ran or waited on an instance that is gone wait at its stage again. It has used up an attempt
// if it ran.
func (q *queries) lost(i *fleet.Instance) {
	for i.Running() > 0 {
		b, _ := q.fleet.Finish(i, i.Batch(0).ID, q.now)
		q.used(&b, q.now.Sub(b.Started))
		for ref := b.Head; ref != fleet.Nil; {
			next := q.fleet.Next(ref)
			r := q.fleet.Task(ref).Record()
			attempts := q.fleet.Attempted(ref)
			switch {
			case q.records.at(r).ended:
				q.release(ref)
			case attempts >= q.attempts:
				q.giveUp(ref, serving.Failed, TriedTooOften).Stage = i.Stage()
			default:
				q.retry(ref)
			}
			ref = next
		}
	}
	q.sendAllBack(i)
}

// used counts the measured time of a batch for its queries, by their items, and for their tenants.
func (q *queries) used(b *fleet.Batch, took time.Duration) {
	if b.Items == 0 {
		return
	}
	for ref := b.Head; ref != fleet.Nil; ref = q.fleet.Next(ref) {
		t := q.fleet.Task(ref)
		rec, x := q.records.at(t.Record()), part(took, t.Items(), b.Items)
		if rec.machine += x; rec.missed {
			q.wasted += x
		}
		if q.shares.counts() {
			q.shares.ran(rec, x)
		}
	}
}

// missed counts the machine time of a query as wasted, and all that it still takes.
func (q *queries) missed(rec *record) {
	rec.missed = true
	q.wasted += rec.machine
}

// sendAllBack returns everything that waits on an instance to its stage.
func (q *queries) sendAllBack(i *fleet.Instance) {
	for i.Queue().Len() > 0 {
		q.sendBack(i.Queue().Head())
	}
}

// through advances a query of which a task is through its stage, and ends it for a reason where it was the last one.
// The query's accuracy is the product over its stages of the mean over a stage's items of the accuracy of the answers.
func (q *queries) through(r fleet.Ref, t *fleet.Task, how *served, why Reason) {
	rec := q.records.at(r)
	flow := rec.flow
	changes := q.flows.served(flow, t, how)
	if len(changes) == 0 {
		return
	}
	rec.accuracy *= q.flows.accuracy(flow, t.Stage())
	for _, c := range changes {
		s := q.flows.stageAt(flow, c)
		if c.Kind != pipeline.Ready {
			q.streams.passed(r, s)
		} else if q.enter(r, s); q.records.at(r).ended {
			return
		}
	}
	if q.flows.complete(flow) {
		q.finish(r, why, how.answer)
	}
}

// enter makes the tasks of a stage whose input is complete: one for every item, so that they go to whichever instances
// are next and fill batches whatever their number; of more items than pipeline.MostTasks several together, but no more
// than the largest batch that anything takes.
func (q *queries) enter(r fleet.Ref, s serving.StageID) {
	left := q.flows.items(q.records.at(r).flow, s)
	length := q.beliefs.lengths.at(s, q.flows.length(q.records.at(r).flow, s))
	largest := int32(min(q.largestBatch(s), int(left+pipeline.MostTasks-1)/pipeline.MostTasks))
	query := q.records.at(r).query
	if length > 0 {
		q.beliefs.lengths.came(s, left, length)
	}
	for offset := int32(0); left > 0; {
		items := min(left, largest)
		w := q.work(&query, s, items, length)
		w.Offset = offset
		if ok, why := q.admission.admits(&w); !ok && !q.admission.startsOnDemand(s, why) && !q.admission.planned(&w) {
			q.end(r, serving.Failed, why).Stage = s
			return
		}
		q.add(r, &w)
		left -= items
		offset += items
	}
}

// cheapestBatch returns the largest batch, in items, that anything at a stage takes, and the least time that an item is
// believed to take there in such batches. Where nothing runs it is 1 item, and any time: only relations count then.
func (q *queries) cheapestBatch(s serving.StageID) (largest int, each time.Duration) {
	largest, each = 1, profile.Unknown
	for _, i := range q.fleet.Live() {
		if i.Stage() != s {
			continue
		}
		for k := range i.Variants() {
			if l := i.Variant(k); l.Wanted && l.Limit > 0 {
				largest = max(largest, l.Limit)
				if took := q.fleet.Latency(l.Variant, i.DeviceType(), l.Limit, 1); took < profile.Unknown {
					each = min(each, took/time.Duration(l.Limit))
				}
			}
		}
	}
	if each == profile.Unknown {
		each = time.Millisecond
	}
	return largest, max(each, 1)
}

// largestBatch is the largest batch, in items, that anything at a stage takes; 1 where nothing runs.
func (q *queries) largestBatch(s serving.StageID) int {
	largest := 1
	for _, i := range q.fleet.Live() {
		if i.Stage() != s {
			continue
		}
		for k := range i.Variants() {
			if l := i.Variant(k); l.Wanted {
				largest = max(largest, l.Limit)
			}
		}
	}
	return largest
}
