package steps

import (
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Query is a query with the batches that it was in. Names are those of when it arrived. Its app and variant are
// serving.None once their places in the spec's tables are used again.
type Query struct {
	serving.Query
	app, tenant, pinned string
	parts               []part

	ended    serving.Time // serving.Never before
	outcome  serving.Outcome
	reason   engine.Reason
	late     bool
	accuracy float64
	certain  bool    // of how sure the first answer was is known
	sure     float32 // that
}

// part is what a query had in a batch. A query has several parts when its app has several stages, a batch failed, or an
// answer was not sure.
type part struct {
	*Batch
	task  *engine.Task // the first that it had there
	items int32
}

// find returns a query that is kept, or nil.
func (l *Log) find(id serving.QueryID) *Query {
	q := &l.queries[uint64(id)%uint64(len(l.queries))]
	if q.ID != id || id == 0 {
		return nil
	}
	return q
}

func (l *Log) arrived(x *serving.Query) {
	if l.only != 0 && x.ID != l.only {
		return
	}
	q := &l.queries[uint64(x.ID)%uint64(len(l.queries))]
	clear(q.parts)
	*q = Query{Query: *x, parts: q.parts[:0], ended: serving.Never}
	if x.App >= 0 && int(x.App) < len(l.spec.Apps) {
		q.app = l.spec.Apps[x.App].Name
	}
	if x.Tenant > 0 && int(x.Tenant) <= len(l.spec.Tenants) {
		q.tenant = l.spec.Tenants[x.Tenant-1].Name
	}
	if x.Variant >= 0 && int(x.Variant) < len(l.spec.Variants) {
		q.pinned = l.spec.Variants[x.Variant].Name
	}
}

func (l *Log) end(now serving.Time, d *engine.Decision) {
	q := l.find(d.Query)
	if q == nil {
		return
	}
	q.ended, q.outcome, q.reason, q.late, q.accuracy = now, d.Outcome, d.Reason, d.Late, d.Accuracy
	q.certain, q.sure = d.Calibrated, d.Confidence
	if d.Outcome == serving.Served {
		l.answered = d.Query
	}
}

// Answered returns the latest query that was served and is remembered; 0 for none.
func (l *Log) Answered() serving.QueryID {
	l.Lock()
	defer l.Unlock()
	return l.answered
}
