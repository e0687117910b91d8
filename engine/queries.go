package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/pq"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// queries holds the clients' queries: accepted or refused, split into tasks that wait and run, and ended once.
type queries struct {
	*world
	agenda    *agenda
	out       *decisions
	admission *admission
	beliefs   *beliefs

	records  *records
	flows    *flows
	streams  *streams
	faults   *faults
	shares   *shares
	attempts int // of a task, after which its query has failed

	// By app.
	waiting []int           // tasks that wait
	pending []int           // accepted queries that have not ended
	idle    []serving.Time  // since when none is pending; Never while one is
	closing []serving.AppID // closed apps of which queries have not ended

	doubts  *doubts
	seconds bool    // the router asks for second answers
	limits  pq.Heap // by task that waits for a better answer: when the one that there is must be given

	wasted time.Duration // machine time of queries that have missed their objective
}

func newQueries(w *world, a *agenda, out *decisions, x *admission, b *beliefs, attempts int) *queries {
	n := len(w.spec.Apps)
	q := &queries{
		world: w, agenda: a, out: out, admission: x, beliefs: b, records: newRecords(w), flows: newFlows(w),
		faults: newFaults(w), attempts: attempts, waiting: make([]int, n), pending: make([]int, n),
		idle: make([]serving.Time, n),
	}
	q.streams = newStreams(w, a, q.records, q.flows)
	q.shares, q.doubts = newShares(w), &doubts{world: w, out: out}
	return q
}

// isForOpenApp reports whether a query is for an app that exists and is open. It refuses others.
func (q *queries) isForOpenApp(x *serving.Query) bool {
	switch {
	case x.App < 0 || int(x.App) >= len(q.spec.Apps):
		q.refuse(x, UnknownApp, false)
	case q.spec.Apps[x.App].Closed:
		q.refuse(x, AppClosed, false)
	default:
		return true
	}
	return false
}

// accept accepts a query of an open app, or refuses it.
func (q *queries) accept(x *serving.Query) {
	if x.Items < 1 || x.Deadline <= x.Arrived || x.ID == 0 || q.records.find(x.ID) != fleet.Nil {
		q.refuse(x, BadQuery, false)
		return
	}
	q.monitor.AddSize(x.App, x.Items)
	app := &q.spec.Apps[x.App]
	w := q.work(x, app.Stages[0], x.Items, q.beliefs.lengths.at(app.Stages[0], x.Length))
	if w.Length > 0 {
		q.beliefs.lengths.came(w.Stage, x.Items, w.Length)
	}
	if ok, why := q.admission.admits(&w); !ok && !q.admission.startsOnDemand(w.Stage, why) {
		q.refuse(x, why, q.admission.retry(&w, why))
		return
	}
	if longest := q.admission.longest(&w); longest > 0 && !app.ServesLate(x.Own) && w.ColdUntil == 0 {
		d := q.refuse(x, TooLong, false)
		d.Length, d.Longest = x.Length, longest
		return
	}
	var share share
	if q.shares.counts() {
		batch, least := q.cheapestBatch(w.Stage)
		share = q.shares.arrived(x, q.pending[x.App]-q.waiting[x.App], batch, least)
	}
	if q.full(w.Stage, q.spec.Stages[w.Stage].Queue.Level(x.Priority)) ||
		q.waiting[x.App] >= app.QueueLimit && (share.beyond || !q.displace(app)) {
		q.shares.notTaken(x, share)
		q.refuse(x, QueueFull, true)
		return
	}
	if len(app.Stages) > 1 && x.MinAccuracy > 0 && !q.admission.floorMet(app, x.MinAccuracy) {
		q.shares.notTaken(x, share)
		q.refuse(x, NoVariant, false)
		return
	}
	r := q.open(x)
	if q.records.at(r).share = share; share.beyond {
		q.records.at(r).query.Priority = fleet.BeyondShare
		w.Priority = fleet.BeyondShare
	}
	ref := q.add(r, &w)
	if !app.ServesLate(x.Own) && q.fleet.Task(ref).DropAt() < q.now && !q.beliefs.probe(ref) {
		q.end(r, serving.Dropped, DeadlinePassed)
	}
}

// invoked records a call of an app. It returns how long the app was idle, and false if it was not.
func (q *queries) invoked(a serving.AppID) (idle time.Duration, was bool) {
	since := q.idle[a]
	if since == serving.Never {
		return 0, false
	}
	q.idle[a] = q.now
	return q.now.Sub(since), true
}

// idleSince sets since when an idle app has been idle.
func (q *queries) idleSince(a serving.AppID, since serving.Time) { q.idle[a] = since }

// displace makes room in a full queue for a query within its tenant's share: the last one at the first stage that is
// beyond its own leaves. It reports whether there was one.
func (q *queries) displace(app *serving.App) bool {
	beyond := func(list *fleet.Queue) bool {
		if list.Len() == 0 || !q.fleet.Task(list.Tail()).BeyondShare() {
			return false
		}
		q.end(q.fleet.Task(list.Tail()).Record(), serving.Refused, Displaced).Retry = true
		return true
	}
	s := app.Stages[0]
	if beyond(q.fleet.Central(s)) || beyond(q.fleet.AwaitingTurn(s)) {
		return true
	}
	for _, i := range q.fleet.Ready(s) {
		if beyond(i.Queue()) {
			return true
		}
	}
	return false
}

// refuse answers a query that is not accepted. retry is set when it may be accepted later.
func (q *queries) refuse(x *serving.Query, why Reason, retry bool) *Decision {
	d := q.out.ofQuery(serving.Refused, why, x)
	if why != UnknownApp {
		d.Stage = q.spec.Apps[x.App].Stages[0]
	}
	if d.Retry = retry; retry {
		d.RetryAfter = q.admission.expected(&q.spec.Apps[x.App], why)
	}
	return d
}

// open makes the record of an accepted query.
func (q *queries) open(x *serving.Query) fleet.Ref {
	r := q.records.open(x)
	q.pending[x.App]++
	q.idle[x.App] = serving.Never
	if len(q.spec.Apps[x.App].Stages) > 1 {
		q.records.at(r).flow = q.flows.open(x)
	}
	q.streams.enter(r)
	return r
}

// clockSlack is how much sooner than its deadline a query is to be ready on a real clock (serving.Query.Slack), under a
// router that chooses whole batches. Where others wait at its stage, time is better given to one that is going to be in
// time: a rule that fills a machine with the queries that can just be in time would otherwise lose all that end a
// moment later than believed. Where none waits, a query is tried that can only just be in time. Other routers leave the
// choice to batchers, which start sooner by the slack (shorterwait.go).
func (q *queries) clockSlack(x *serving.Query, s serving.StageID) time.Duration {
	if !q.agenda.global || q.fleet.Central(s).Len() == 0 {
		return 0
	}
	return x.Slack
}

// keepOrder has a task not be before those of its rank that wait already and whose queries come before its own, since
// it keeps time free and they do not, or less: where nothing else tells queries apart they start in the order of their
// arrival.
func (q *queries) keepOrder(w *fleet.Work, x *serving.Query) {
	free := q.spec.Apps[x.App].Slack
	by := w.Due.Add(free)
	if by == x.Deadline {
		return
	}
	least := by
	for _, queue := range [...]*fleet.Queue{q.fleet.Central(w.Stage), q.fleet.AwaitingTurn(w.Stage)} {
		for ref := queue.Tail(); ref != fleet.Nil; ref = q.fleet.Previous(ref) {
			t := q.fleet.Task(ref)
			if t.Rank() < w.Rank() {
				break
			}
			y := &q.records.at(t.Record()).query
			if t.Rank() == w.Rank() && (y.Deadline < x.Deadline || y.Deadline == x.Deadline && y.ID <= x.ID) {
				least = max(least, min(t.Due().Add(free), x.Deadline))
				break
			}
		}
	}
	more := least.Sub(by)
	w.Deadline, w.LatestEnd, w.Due = w.Deadline.Add(more), w.LatestEnd.Add(more), w.Due.Add(more)
}

// work describes items of a query at a stage, of a length that counts there; 0 for none. A query that finds nothing
// ready there waits for a cold start, where the scaler starts instances for calls, and makes the scaler decide.
func (q *queries) work(x *serving.Query, s serving.StageID, items, length int32) fleet.Work {
	by := x.Deadline.Add(-q.clockSlack(x, s))
	w := fleet.Work{
		Query: x.ID, Stage: s, Items: items, Length: length, Pin: serving.None,
		Deadline:  by.Add(-q.beliefs.tails[s]),
		LatestEnd: by.Add(-q.beliefs.needs[s]), Due: by.Add(-q.spec.Apps[x.App].Slack), Ready: q.now,
		MinAccuracy: x.MinAccuracy, Priority: x.Priority,
	}
	if x.Variant >= 0 && int(x.Variant) < len(q.spec.Variants) && q.spec.Variants[x.Variant].Stage == s {
		w.Pin = x.Variant
	} else if w.MinAccuracy > 0 && q.admission.everyVariantMeets(s, w.MinAccuracy) {
		w.MinAccuracy = 0
	}
	q.limit(&w, x)
	if q.admission.wakes && len(q.fleet.Ready(s)) == 0 {
		q.agenda.scaler = true
		if wait := q.spec.Apps[x.App].ColdWait; wait > 0 {
			w.ColdUntil = x.Arrived.Add(wait)
		}
	}
	return w
}

// add makes a task of a query and lets it wait at its stage. After a query once found nothing ready, all its later
// tasks may start late.
func (q *queries) add(r fleet.Ref, w *fleet.Work) fleet.Ref {
	rec := q.records.at(r)
	w.Record, w.Asking = r, rec.share.asking
	rec.coldUntil = max(rec.coldUntil, w.ColdUntil)
	w.ColdUntil = rec.coldUntil
	x, late := &rec.query, q.spec.Apps[rec.query.App].Late == serving.ServeLate
	w.Tries = q.seconds && w.MinAccuracy > 0 && w.Pin == serving.None && w.Items == 1 && !late
	if x.Expires > 0 && (w.ColdUntil > 0 || late) {
		w.Expires, q.expires = x.Expires, true // elsewhere nothing starts after the deadline anyhow
	}
	if late && x.Own {
		w.Own, q.expires = true, true
	}
	if w.Asking && w.ColdUntil == 0 && !late {
		q.expireWhole(w)
	}
	q.keepOrder(w, &rec.query)
	ref := q.fleet.Add(w)
	q.records.attach(ref)
	q.wait(ref)
	return ref
}

// expireWhole has a task of a tenant that asks for more than its share start only while a whole batch with it would be
// in time. Queues of such tenants are as long as their deadlines allow: at their heads stand tasks that a small batch
// alone serves, one after the other, and small batches waste the time that all tenants share.
func (q *queries) expireWhole(w *fleet.Work) {
	batch, each := q.cheapestBatch(w.Stage)
	by := w.LatestEnd.Add(-time.Duration(batch) * each)
	if by > q.now && (w.Expires == 0 || by < w.Expires) {
		w.Expires, q.expires = by, true
	}
}

// wait lets a task that is in no place wait at its stage. The end of the step routes it.
func (q *queries) wait(ref fleet.Ref) {
	t := q.fleet.Task(ref)
	s := t.Stage()
	q.count(t, 1)
	switch {
	case q.gathers(ref):
		q.gather(ref)
	case q.streams.ordered(s):
		q.streams.wait(ref)
	default:
		q.fleet.Wait(ref)
	}
	q.agenda.routeStage(s) // routing sets the queue's timer
}

// sendBack returns a task from its instance's queue to its stage.
func (q *queries) sendBack(ref fleet.Ref) {
	q.dequeue(ref)
	q.wait(ref)
}

// retry lets a task that has run without success wait again, if it is not too late.
func (q *queries) retry(ref fleet.Ref) {
	q.wait(ref)
	q.agenda.setStageTimer(q.fleet.Task(ref).Stage())
}

// count counts a task that waits from now on, or no longer does. Tasks with an answer take no room in the app's queue.
func (q *queries) count(t *fleet.Task, by int) {
	if t.Hint() == 0 {
		q.waiting[q.spec.Stages[t.Stage()].App] += by
	}
}

// charge charges the tenants of the first tasks of a queue, n of them with so many items, for the batch that they begin
// together.
func (q *queries) charge(head fleet.Ref, n, items int, expected time.Duration) {
	if !q.shares.counts() {
		return
	}
	for ref := head; n > 0; ref, n = q.fleet.Next(ref), n-1 {
		t := q.fleet.Task(ref)
		q.shares.started(q.records.at(t.Record()), part(expected, t.Items(), items))
	}
}

// part is that of some of a batch's items in its time. A time that is Unknown has no parts.
func part(took time.Duration, items, all int) time.Duration {
	if took >= profile.Unknown {
		return profile.Unknown
	}
	return time.Duration(float64(took) * float64(items) / float64(all))
}

// dequeue takes a waiting task out of its queue.
func (q *queries) dequeue(ref fleet.Ref) {
	t := q.fleet.Task(ref)
	q.count(t, -1)
	place, stage, holder := t.Place(), t.Stage(), t.Holder()
	q.fleet.Dequeue(ref)
	if place != fleet.Queued {
		q.agenda.setStageTimer(stage)
	} else if i := q.fleet.Instance(holder); i != nil {
		q.agenda.setInstanceTimer(i)
		q.agenda.touch(i) // without its head, the batch may have to start at another time
		q.agenda.vacate(i)
	}
}

// release frees a task that is in no place, and the record of its query with the last one.
func (q *queries) release(ref fleet.Ref) {
	q.faults.dropped(ref)
	q.streams.endTurn(ref)
	q.limits.Remove(int(ref))
	q.flows.forget(ref)
	if r := q.records.release(ref); q.records.over(r) {
		q.close(r)
	}
}

// close frees the records of a query without tasks.
func (q *queries) close(r fleet.Ref) {
	if f := q.records.at(r).flow; f >= 0 {
		q.flows.close(f)
	}
	q.streams.leave(r)
	q.records.close(r)
}

// cancel ends a query whose client has gone.
func (q *queries) cancel(id serving.QueryID) {
	if r := q.records.find(id); r != fleet.Nil {
		q.end(r, serving.Cancelled, ClientGone)
	}
}

// decided records that the outcome of a query is decided.
func (q *queries) decided(r fleet.Ref) {
	q.records.end(r)
	if rec := q.records.at(r); rec.certain {
		for ref := rec.first; ref != fleet.Nil; ref = q.fleet.Sibling(ref) {
			q.limits.Remove(int(ref))
		}
	}
	q.shares.ended(q.records.at(r))
	a := q.records.at(r).query.App
	if q.pending[a]--; q.pending[a] == 0 {
		q.idle[a] = q.now
	}
}

// end decides the outcome of a query that was not served, and returns the decision. It removes waiting tasks; the
// results of running ones are discarded. Where it has no task any more, the caller says at which stage it failed.
func (q *queries) end(r fleet.Ref, o serving.Outcome, why Reason) *Decision {
	rec := q.records.at(r)
	x := rec.query
	if rec.ended {
		q.violated(fmt.Errorf("engine: query %d ended twice", x.ID))
		return &Decision{}
	}
	if rec.kept.batch != 0 && o != serving.Cancelled {
		return q.giveKept(r, OutOfTime)
	}
	q.decided(r)
	if o != serving.Cancelled {
		q.missed(rec)
	}
	q.streams.ended(r)
	waited, stage := q.removeWaiting(r)
	if o != serving.Cancelled {
		q.monitor.Miss(q.now, x.App)
	}
	d := q.out.ofQuery(o, why, &x)
	d.Queue, d.Stage = waited, stage
	return d
}

// giveUp gives up a task that waits, or whose batch has ended: where it has an answer that is its last, and otherwise
// its query ends so. It returns that decision, or one that is not heard of.
func (q *queries) giveUp(ref fleet.Ref, o serving.Outcome, why Reason) *Decision {
	r, waits := q.fleet.Task(ref).Record(), q.fleet.Task(ref).Place().Waits()
	if q.flows.keeps(ref) {
		if waits {
			q.dequeue(ref)
		}
		q.handOn(ref, OutOfTime)
		q.release(ref)
		return &Decision{}
	}
	if !waits {
		q.release(ref)
	}
	return q.end(r, o, why)
}

// removeWaiting removes the waiting tasks of a query that has ended. It returns where one waited, and how long.
func (q *queries) removeWaiting(r fleet.Ref) (waited time.Duration, stage serving.StageID) {
	rec := q.records.at(r)
	stage = q.spec.Apps[rec.query.App].Stages[0]
	if rec.tasks == 0 {
		q.close(r)
	} else {
		stage = q.fleet.Task(rec.first).Stage()
	}
	for ref := rec.first; ref != fleet.Nil; {
		next := q.fleet.Sibling(ref)
		if t := q.fleet.Task(ref); t.Place().Waits() {
			waited, stage = q.now.Sub(t.ReadyAt()), t.Stage()
			q.dequeue(ref)
			q.release(ref)
		}
		ref = next
	}
	return waited, stage
}

// answer is an answer of a variant to a query.
type answer struct {
	variant  serving.VariantID
	instance serving.InstanceID
	batch    serving.BatchID
	items    int           // of the batch
	queue    time.Duration // waited for it
}

// newAnswer is that of a batch to the query of a task.
func newAnswer(t *fleet.Task, i *fleet.Instance, b *fleet.Batch) answer {
	return answer{b.Variant, i.ID(), b.ID, b.Items, b.Started.Sub(t.ReadyAt())}
}

// finish records that a query was served, with its last answer.
func (q *queries) finish(r fleet.Ref, why Reason, x answer) *Decision {
	q.shares.served(q.records.at(r))
	q.decided(r)
	rec := q.records.at(r)
	d := q.out.ofQuery(serving.Served, why, &rec.query)
	if d.Late = q.now > d.Deadline; d.Late {
		q.missed(rec)
		q.monitor.Miss(q.now, d.App)
	}
	q.monitor.Answer(d.App, rec.accuracy)
	d.Variant, d.Instance, d.Batch, d.Items = x.variant, x.instance, x.batch, int32(x.items)
	d.Queue, d.Accuracy, d.Calibrated = x.queue, rec.accuracy, rec.certain
	d.Confidence, d.Second = rec.sure, rec.again
	if rec.flow >= 0 {
		first := len(q.out.times)
		q.out.times = q.flows.times(rec.flow, q.out.times)
		d.Stages = q.out.times[first:len(q.out.times):len(q.out.times)]
	}
	return d
}

// waits reports whether any task waits at a stage and has no instance yet.
func (q *queries) waits(s serving.StageID) bool {
	return q.fleet.Central(s).Len()+q.fleet.AwaitingTurn(s).Len() > 0
}

// isClosing reports whether a stage's app is closed and has queries that have not ended.
func (q *queries) isClosing(s serving.StageID) bool {
	return slices.Contains(q.closing, q.spec.Stages[s].App)
}

// grow extends the tables to a spec that has grown: fresh apps, and apps that are now closed.
func (q *queries) grow(fresh *serving.Fresh) {
	q.waiting, q.pending = serving.Cleared(q.waiting, fresh.Apps), serving.Cleared(q.pending, fresh.Apps)
	q.idle = serving.Renew(q.idle, fresh.Apps, func(serving.AppID) serving.Time { return q.now })
	for a := range q.spec.Apps {
		if id := serving.AppID(a); q.spec.Apps[a].Closed && q.pending[a] > 0 && !slices.Contains(q.closing, id) {
			q.closing = append(q.closing, id)
		}
	}
	q.flows.grow(fresh.Apps)
	q.streams.grow(fresh)
	q.shares.grow(fresh.Apps)
}

// check reports a query that is miscounted, out of the order of its stream, or followed wrongly.
func (q *queries) check() error {
	waiting, open, err := q.records.check()
	if err != nil {
		return err
	}
	for a := range waiting {
		if open[a] != q.pending[a] {
			return fmt.Errorf("app %q counts %d queries that have not ended, has %d", q.spec.Apps[a].Name, q.pending[a],
				open[a])
		}
		if waiting[a] != q.waiting[a] {
			return fmt.Errorf("app %q counts %d waiting tasks, has %d", q.spec.Apps[a].Name, q.waiting[a], waiting[a])
		}
	}
	followed := 0
	for r := range q.records.list {
		if q.records.list[r].flow >= 0 {
			followed++
		}
	}
	if err := q.flows.check(followed); err != nil {
		return err
	}
	if err := q.shares.check(q.records.list); err != nil {
		return err
	}
	return q.streams.check()
}
