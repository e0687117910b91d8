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
// answers that are there, at the latest when its deadline comes. In a graph the answer is that of a stage to an item,
// and it goes on to the next ones instead: at the latest while they have the time that they need.
//
// A query that wants an accuracy (serving.Query.MinAccuracy) may have its first answer from a variant below it. That
// counts where the variant is so sure of it that such answers have the accuracy, and else is as if it had not been.

// goesOn lets what a task whose batch has ended is unsure of wait for better answers, and reports whether it does. sure
// is the confidence of each item; nil where it is not known. A confidence without a second answer says how accurate
// this one is, too. What falls short of the accuracy that its query wants is answered again, whatever that costs. h is
// what the task hands on.
func (q *queries) goesOn(ref fleet.Ref, i *fleet.Instance, b *fleet.Batch, sure []float32, h handed) bool {
	t := q.fleet.Task(ref)
	stage := &q.spec.Stages[i.Stage()]
	if !q.seconds || t.Hint() > 0 || t.Pin() != serving.None {
		return false
	}
	c := stage.Confidence(b.Variant)
	r := t.Record()
	rec := q.records.at(r)
	graph := rec.flow >= 0
	if rec.ended {
		return false
	}
	known := c != nil && len(sure) > 0 && (!graph || len(sure) == 1) && q.doubts.answered(c, sure)
	if floor := t.MayTry(); floor > q.spec.Variants[b.Variant].Accuracy &&
		!(known && c.Bins[c.At(sure[0])].Accuracy >= floor) {
		short := serving.Hint(0)
		if known {
			short = stage.Hint(b.Variant, sure[0])
			rec.isSure(sure[0])
		}
		q.faults.served(ref, i.ID())
		q.fleet.FallShort(ref, short, q.now)
		q.retry(ref)
		return true
	}
	if !known || t.Short() > 0 {
		return false
	}
	q.faults.served(ref, i.ID())
	rec.isSure(slices.Min(sure))
	accuracy, unsure := 0.0, 0
	for _, x := range sure {
		bin := &c.Bins[c.At(x)]
		accuracy += bin.Accuracy / float64(len(sure))
		if bin.Improvable() {
			unsure++
		}
	}
	until := min(t.Due(), rec.query.Deadline.Add(-rec.query.Slack))
	if graph {
		until = min(until, t.LatestEnd())
	}
	final := q.now >= until || unsure == 0 || unsure > pipeline.MostTasks
	var how served
	if graph {
		how = q.flows.newServed(t, i, b, accuracy, h)
	} else {
		rec.accuracy, rec.kept = accuracy, newAnswer(t, i, b)
	}
	switch {
	case graph && final:
		of := *t // tasks of the next stages may move it
		q.through(r, &of, &how, Answered)
		q.release(ref)
	case final:
		q.finish(r, Answered, rec.kept)
		q.release(ref)
	case len(sure) == 1:
		if graph {
			q.flows.keep(ref, &how)
		}
		q.wantBetter(ref, stage.Hint(b.Variant, sure[0]), until)
	default:
		w := t.Work()
		w.Items, w.Of, w.Ready = 1, int32(len(sure)), q.now
		for k, x := range sure {
			if w.Offset, w.Hint = int32(k), stage.Hint(b.Variant, x); stage.Hinted(w.Hint).Improvable() {
				q.limits.Set(int(q.add(r, &w)), int64(until))
			}
		}
		q.release(ref)
	}
	return true
}

// isSure takes up how sure a variant is of an answer: the least confidence counts.
func (x *record) isSure(confidence float32) {
	if x.certain {
		confidence = min(confidence, x.sure)
	}
	x.certain, x.sure = true, confidence
}

// wantBetter lets a task that has an answer wait for a better one, until the one that there is must be given.
func (q *queries) wantBetter(ref fleet.Ref, h serving.Hint, until serving.Time) {
	q.fleet.Answer(ref, h, q.now)
	q.limits.Set(int(ref), int64(until))
	q.retry(ref)
}

// accuracyOf is how accurate the answer of a variant to a task is. Where nothing is known of the task's first answer
// any more it counts as that one.
func (q *queries) accuracyOf(t *fleet.Task, v serving.VariantID) float64 {
	stage := &q.spec.Stages[t.Stage()]
	if bin := stage.Hinted(t.Hint()); bin != nil && bin.Improves(v) {
		return bin.Of(v)
	}
	if bin := stage.Hinted(t.Short()); bin != nil && bin.Of(v) > 0 {
		return bin.Of(v)
	}
	return q.spec.Variants[v].Accuracy
}

// answered counts the answer of a variant to a query of an app of one stage, or to an item of which there is an answer,
// and reports whether it is the last.
func (q *queries) answered(rec *record, t *fleet.Task, v serving.VariantID) bool {
	if t.Of() == 1 {
		rec.accuracy = q.accuracyOf(t, v)
	} else if bin := q.spec.Stages[t.Stage()].Hinted(t.Hint()); bin != nil && bin.Improves(v) {
		rec.accuracy += (bin.Of(v) - bin.Accuracy) / float64(t.Of())
	}
	rec.again = rec.again || t.Hint() > 0
	return rec.tasks == 1
}

// handOn lets the answer that a task has go on.
func (q *queries) handOn(ref fleet.Ref, why Reason) {
	t := *q.fleet.Task(ref)
	how := *q.flows.take(ref)
	q.limits.Remove(int(ref))
	q.through(t.Record(), &t, &how, why)
}

// giveKept ends a query with the answer that is there.
func (q *queries) giveKept(r fleet.Ref, why Reason) *Decision {
	d := q.finish(r, why, q.records.at(r).kept)
	q.removeWaiting(r)
	return d
}

// answerDue gives the answers whose queries have no time left for better ones.
func (q *queries) answerDue() {
	for k, at, ok := q.limits.Min(); ok && serving.Time(at) <= q.now; k, at, ok = q.limits.Min() {
		ref := fleet.Ref(k)
		switch t := q.fleet.Task(ref); {
		case !q.flows.keeps(ref):
			q.giveKept(t.Record(), OutOfTime)
		case t.Place().Waits():
			q.giveUp(ref, serving.Served, OutOfTime)
		default:
			q.handOn(ref, OutOfTime)
		}
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
		switch {
		case q.flows.keeps(ref):
			q.handOn(ref, SureEnough)
		case q.records.at(r).tasks == 1:
			q.finish(r, SureEnough, q.records.at(r).kept)
		}
		q.release(ref)
	}
}
