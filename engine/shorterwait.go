package engine

import (
	"time"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const (
	// expectedAlone is the number of arrivals expected while a batch fills below which a query that waits alone does
	// not wait: it would most likely be alone at the end as well.
	expectedAlone = 0.5
	// expectedOver is the time over which arrivals are counted for that.
	expectedOver = 5 * time.Second
	// mostUnwaited is the most queries that start alone at once after waits for nobody.
	mostUnwaited = 64
)

// company counts how waits of queries that were alone ended. A client that sends its next query after the answer to the
// last arrives at a rate like any other, and never while it waits. So after a wait for nobody the next query does not
// wait, after another one the next two do not, and so on, until a wait was joined.
type company struct {
	unwaited int // queries to start at once before the next wait
	next     int // value of unwaited after another wait for nobody
}

// shortenWait shortens the wait of a batcher on a real clock (serving.Query.Slack). Rules of papers wait until the last
// instant at which the first query can be in time. A timer fires a moment later, and the query would be dropped. So the
// batch starts earlier by the slack. A query alone in its queue starts at once where no other is expected in time.
//
// On any clock a wait that was planned with other beliefs ends before the first query is dropped, where batches may put
// beliefs right: queries that are all dropped while they are held would leave a belief wrong for ever.
func (d *dispatch) shortenWait(i *fleet.Instance, x *batch.Decision) {
	q := i.Queue()
	head := d.fleet.Task(q.Head())
	slack := d.queries.records.at(head.Record()).query.Slack
	if slack <= 0 && !d.queries.beliefs.correctable(i.Stage()) {
		return
	}
	if last := d.fleet.EarliestDrop(q); last != serving.Never {
		x.Until = min(x.Until, last.Add(-slack))
	}
	reason := batch.MustStart
	if x.Until > d.now {
		if slack <= 0 || q.Len() > 1 || x.Until == serving.Never ||
			d.expectsCompany(i, head.Query(), x.Until.Sub(d.now)) {
			return
		}
		reason = batch.Idle
	}
	n, _ := d.shown.Fit(d.may.limit)
	*x = batch.Decision{Action: batch.Run, N: max(n, 1), Variant: d.may.variant, Reason: reason}
}

// expectsCompany reports whether a query that is alone should wait for others, and notes that it does.
func (d *dispatch) expectsCompany(i *fleet.Instance, q serving.QueryID, within time.Duration) bool {
	if was, waited := d.alone[i.ID()]; waited && was == q {
		return true // it waits already
	} else if waited {
		d.waitEnded(i, 1) // the other was dropped or cancelled while it waited
	}
	s := i.Stage()
	if d.monitor.Rate(d.now, d.spec.Stages[s].App, expectedOver)*within.Seconds() < expectedAlone {
		return false
	}
	if int(s) >= len(d.company) {
		d.company = lengthened(d.company, len(d.spec.Stages))
	}
	if c := &d.company[s]; c.unwaited > 0 {
		c.unwaited--
		return false
	}
	if d.alone == nil {
		d.alone = make(map[serving.InstanceID]serving.QueryID)
	}
	d.alone[i.ID()] = q
	return true
}

// grow takes up what the spec has grown by. The router forgets what it knows of entries whose places are used again.
func (d *dispatch) grow(fresh *serving.Fresh) {
	serving.Forget(d.company, fresh.Stages, company{})
	if f, ok := d.router.(Forgetter); ok {
		f.Forget(d.now, fresh)
	}
}

// waitEnded notes how the wait of a query that was alone ended, once a batch of n queries starts on its instance.
func (d *dispatch) waitEnded(i *fleet.Instance, n int) {
	if _, waited := d.alone[i.ID()]; !waited {
		return
	}
	delete(d.alone, i.ID())
	c := &d.company[i.Stage()]
	if n > 1 {
		*c = company{}
		return
	}
	c.next = min(max(1, 2*c.next), mostUnwaited)
	c.unwaited = c.next
}
