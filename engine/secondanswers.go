package engine

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// A query whose first answer is not sure may have a second one, from a better variant (serving.Confidence). It keeps
// the first, and waits like any other: the router says which of those that wait are worth machine time. Each item that
// may have a better answer is a task of its own. What ends the query in another way than by its client gives the
// answers that are there, at the latest when its deadline comes.

// goesOn lets what a task whose batch has ended is unsure of wait for better answers, and reports whether it does. sure
// is the confidence of each item; nil where it is not known. A confidence without a second answer says how accurate
// this one is, too.
func (q *queries) goesOn(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, sure []float32) bool {
	t := q.fleet.Task(ref)
	stage := &q.spec.Stages[i.Stage()]
	if !q.seconds || len(sure) == 0 || t.Hint() > 0 || t.Pin() != serving.None {
		return false
	}
	c := stage.Confidence(b.Variant)
	r := t.Record()
	if rec := q.records.at(r); c == nil || rec.ended || rec.flow >= 0 || !q.doubts.answered(c, sure) {
		return false
	}
	q.faults.served(ref, i.ID())
	rec := q.records.at(r)
	rec.accuracy, rec.certain, rec.sure = 0, true, slices.Min(sure)
	rec.kept = newAnswer(t, i, b)
	unsure := 0
	for _, x := range sure {
		bin := &c.Bins[c.At(x)]
		rec.accuracy += bin.Accuracy / float64(len(sure))
		if bin.Improvable() {
			unsure++
		}
	}
	switch {
	case q.now >= t.Due() || unsure == 0 || unsure > pipeline.MostTasks:
		q.finish(r, Answered, rec.kept)
		q.release(ref)
		return true
	case len(sure) == 1:
		q.fleet.Answer(ref, stage.Hint(b.Variant, sure[0]), q.now)
		q.retry(ref)
	default:
		w := t.Work()
		w.Items, w.Of, w.Ready = 1, int32(len(sure)), q.now
		for k, x := range sure {
			if w.Offset, w.Hint = int32(k), stage.Hint(b.Variant, x); stage.Hinted(w.Hint).Improvable() {
				q.add(r, &w)
			}
		}
		q.release(ref)
	}
	rec = q.records.at(r)
	due := min(q.fleet.Task(rec.first).Due(), rec.query.Deadline.Add(-rec.query.Slack))
	q.limits.Set(int(r), int64(max(due, q.now+1)))
	return true
}

// answered counts the answer of a variant to a query, or to an item of which there is an answer, and reports whether it
// is the last. Where nothing is known of an item's first answer any more it counts as that one.
func (q *queries) answered(rec *record, t *fleet.Task, v serving.VariantID) bool {
	bin := q.spec.Stages[t.Stage()].Hinted(t.Hint())
	better := bin != nil && bin.Improves(v)
	switch {
	case better && t.Of() > 1:
		rec.accuracy += (bin.Of(v) - bin.Accuracy) / float64(t.Of())
	case better:
		rec.accuracy = bin.Of(v)
	case t.Of() == 1:
		rec.accuracy = q.spec.Variants[v].Accuracy
	}
	rec.again = rec.again || t.Hint() > 0
	return rec.tasks == 1
}

// giveKept ends a query with the answer that is there.
func (q *queries) giveKept(r fleet.Ref, why Reason) *Decision {
	d := q.finish(r, why, q.records.at(r).kept)
	q.removeWaiting(r)
	return d
}

// answerDue gives the answers whose queries have no time left for better ones.
func (q *queries) answerDue() {
	for r, at, ok := q.limits.Min(); ok && serving.Time(at) <= q.now; r, at, ok = q.limits.Min() {
		q.giveKept(fleet.Ref(r), OutOfTime)
	}
}

// nextAnswer is when answerDue is to be called; serving.Never for not at all.
func (q *queries) nextAnswer() serving.Time {
	if _, at, ok := q.limits.Min(); ok {
		return serving.Time(at)
	}
	return serving.Never
}

// settled gives the answers to tasks that the router has taken out of their queues, since no better answer is worth its
// time.
func (q *queries) settled(list []fleet.Ref) {
	for _, ref := range list {
		t := q.fleet.Task(ref)
		r := t.Record()
		q.agenda.setStageTimer(t.Stage())
		if q.records.at(r).tasks == 1 {
			q.finish(r, SureEnough, q.records.at(r).kept)
		}
		q.release(ref)
	}
}
