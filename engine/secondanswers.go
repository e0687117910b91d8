package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// A query whose first answer is not sure may have a second one, from a better variant (serving.Confidence). It keeps
// the first, and waits like any other, if it has one item: the router says which of those that wait are worth machine
// time. What ends it in another way than by its client gives the first answer, at the latest when its deadline comes.

// goesOn lets a task whose batch has ended wait for a better answer, and reports whether it does. A confidence without
// a second answer says how accurate this one is, too.
func (q *queries) goesOn(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, confidence float32) bool {
	t := q.fleet.Task(ref)
	stage := &q.spec.Stages[i.Stage()]
	if !q.seconds || t.Hint() > 0 || t.Pin() != serving.None || t.Items() > 1 {
		return false
	}
	c := stage.Confidence(b.Variant)
	r := t.Record()
	if rec := q.records.at(r); c == nil || rec.ended || rec.flow >= 0 || !q.doubts.answered(c, confidence) {
		return false
	}
	h := stage.Hint(b.Variant, confidence)
	bin := stage.Hinted(h)
	q.faults.served(ref, i.ID())
	rec := q.records.at(r)
	rec.accuracy, rec.certain, rec.sure = bin.Accuracy, true, confidence
	rec.kept = newAnswer(t, i, b)
	if q.now >= t.Due() || !bin.Improvable() {
		q.finish(r, Answered, rec.kept)
		q.release(ref)
		return true
	}
	q.fleet.Answer(ref, h, q.now)
	q.limits.Set(int(r), int64(max(t.Due(), q.now+1)))
	q.retry(ref)
	return true
}

// accuracyOf is the accuracy of a variant's answer to the query of a task.
func (q *queries) accuracyOf(t *fleet.Task, v serving.VariantID) float64 {
	if t.Hint() > 0 {
		if bin := q.spec.Stages[t.Stage()].Hinted(t.Hint()); bin != nil && bin.Improves(v) {
			return bin.Of(v)
		}
	}
	return q.spec.Variants[v].Accuracy
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
		q.waiting[q.spec.Stages[t.Stage()].App]--
		q.agenda.setStageTimer(t.Stage())
		q.finish(r, SureEnough, q.records.at(r).kept)
		q.release(ref)
	}
}
