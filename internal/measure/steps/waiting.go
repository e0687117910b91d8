package steps

import "github.com/sluice-serving/sluice/serving"

// Waiting is a query that waited at a stage when a batch of it began.
type Waiting struct {
	Items       int
	Due         serving.Time // its deadline
	MinAccuracy float64
	Pin         serving.VariantID // the only variant that may serve it, or serving.None
	In          bool              // it went into the batch
}

// waitingPiece is how many queries are looked at at a time: steps of the engine wait no longer than for that.
const waitingPiece = 1024

// WaitingAt returns the queries that are remembered and waited at the stage of a batch when that began, those of the
// batch included; none for a batch that is not known. Queries that ended before they ever began at a later stage of a
// graph are left out: nothing says when they came there.
func (l *Log) WaitingAt(id serving.BatchID) (out []Waiting) {
	l.Lock()
	defer l.Unlock()
	b := l.Batch(id)
	if b == nil {
		return nil
	}
	for k := range l.queries {
		if k%waitingPiece == waitingPiece-1 {
			l.Unlock()
			l.Lock()
		}
		app := l.spec.Stages[b.Stage].App
		q := &l.queries[k]
		if q.ID == 0 || q.App != app || q.Arrived > b.Started {
			continue
		}
		w := Waiting{Due: q.Deadline, MinAccuracy: q.MinAccuracy, Pin: q.Variant}
		if w.Items = q.waitedFor(b, l.spec.Source(app) == b.Stage); w.Items == 0 {
			continue
		}
		for _, p := range q.parts {
			w.In = w.In || p.Batch == b
		}
		out = append(out, w)
	}
	return out
}

// waitedFor returns how many items of a query waited at the stage of a batch when that began; 0 for none.
func (q *Query) waitedFor(b *Batch, first bool) (items int) {
	been := false
	for _, p := range q.parts {
		if p.Stage != b.Stage {
			continue
		}
		been = true
		if p.Started.Add(-p.task.Queue) <= b.Started &&
			(p.Started > b.Started || p.Started == b.Started && p.ID >= b.ID) {
			items += int(p.items)
		}
	}
	if !been && first && q.ended > b.Started {
		return int(q.Items)
	}
	return items
}
