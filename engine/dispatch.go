package engine

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// dispatch forms batches from waiting tasks: a router gives tasks to instances, and the batcher of each instance
// decides what runs together.
type dispatch struct {
	*world
	agenda    *agenda
	out       *decisions
	force     *inForce
	queries   *queries
	instances *instances

	router   route.Router
	rule     batch.Rule
	batchers []batch.Batcher // by instance ID - 1; nil before the first use and after the instance is removed

	routing   route.View
	shown     batch.View // the view of the batcher that decides
	may       allowance
	changed   []int32 // stages, for a router that decides for all at once
	lastBatch serving.BatchID

	company []company                              // by stage; may be shorter
	alone   map[serving.InstanceID]serving.QueryID // queries that wait alone; see shortenWait

	followsChoice bool // the batcher runs the variants that the router chooses
}

// allowance is what the batcher that decides may do, whatever it changes in its view.
type allowance struct {
	drop         bool
	variant      serving.VariantID
	limit, ready int // items, and queries
}

func newDispatch(w *world, a *agenda, out *decisions, p *inForce, q *queries, i *instances, c *Config) *dispatch {
	d := &dispatch{
		world: w, agenda: a, out: out, force: p, queries: q, instances: i, router: c.Router, rule: c.Batcher,
		shown:         batch.View{Fleet: &w.fleet.View, Monitor: &w.monitor.View},
		followsChoice: c.Batcher.Traits().NeedsChoice,
	}
	d.routing.Open(&w.fleet, &w.monitor.View)
	return d
}

// routeAll lets a router that decides for all stages at once assign what waits anywhere, and sets the timers of the
// stages that have changed.
func (d *dispatch) routeAll() {
	d.agenda.called = false
	d.changed = append(d.changed[:0], d.agenda.stages.list...)
	for _, s := range d.changed {
		d.queries.callBack(serving.StageID(s))
	}
	d.agenda.stages.clear() // answers that are settled may go on to others
	d.routing.Begin(d.now, serving.None, d.force.plan)
	d.router.Route(&d.routing)
	d.queries.settled(d.routing.Settled())
	for _, i := range d.routing.Touched() {
		d.agenda.touch(i)
		d.agenda.setStageTimer(i.Stage())
	}
	for _, s := range d.changed {
		d.agenda.setStageTimer(serving.StageID(s))
	}
	at := d.routing.Asked()
	if at <= d.now {
		d.violated(fmt.Errorf("engine: router %q asked at %v to be called at %v", d.router.Name(), d.now, at))
		at = d.now + 1
	}
	d.agenda.setRouterTimer(at)
}

// route lets the router assign the waiting tasks of a stage.
func (d *dispatch) route(s serving.StageID) {
	d.queries.callBack(s)
	if d.fleet.Central(s).Len() > 0 && len(d.fleet.Ready(s)) > 0 {
		d.routing.Begin(d.now, s, d.force.plan)
		d.router.Route(&d.routing)
		d.queries.settled(d.routing.Settled())
		for _, i := range d.routing.Touched() {
			d.agenda.touch(i)
		}
	}
	d.agenda.setStageTimer(s)
}

// fill lets the batcher of an instance start batches. It forgets the batcher of a removed instance.
func (d *dispatch) fill(id serving.InstanceID) {
	i := d.fleet.Instance(id)
	if i == nil {
		if int(id) <= len(d.batchers) {
			d.batchers[id-1] = nil
		}
		delete(d.alone, id)
		return
	}
	d.fleet.SetWake(i, serving.Never)
	started := false
	for i.FreeSlots() > 0 && i.Queue().Len() > 0 {
		if !d.look(i) {
			continue // the head went back to its stage
		}
		answer := d.batcher(id).Decide(&d.shown)
		if answer.Action == batch.Wait {
			d.shortenWait(i, &answer)
		}
		if answer.Action == batch.Wait {
			d.fleet.SetWake(i, d.later(answer.Until))
			break
		}
		d.restrict(i, &answer)
		if answer.Action == batch.Drop {
			d.queries.giveUp(i.Queue().Head(), serving.Dropped, Reason(answer.Reason))
		} else {
			d.start(i, &answer)
			d.queries.beginTrial(i)
			started = true
		}
	}
	d.agenda.setInstanceTimer(i)
	if started && !d.agenda.global && d.fleet.Central(i.Stage()).Len() > 0 {
		d.agenda.routeStage(i.Stage()) // room in the batch being filled: central queues may use it
	}
	d.instances.stopIfDone(i)
}

// batcher returns the batcher of an instance and makes it on first use.
func (d *dispatch) batcher(id serving.InstanceID) batch.Batcher {
	if int(id) > len(d.batchers) {
		d.batchers = lengthened(d.batchers, int(id))
	}
	if d.batchers[id-1] == nil {
		d.batchers[id-1] = d.rule.New()
	}
	return d.batchers[id-1]
}

// look prepares the batcher's view of the head of i's queue. When nothing on i can serve the head any more, because its
// variant is gone, the head goes back to its stage and look returns false.
func (d *dispatch) look(i *fleet.Instance) bool {
	q := i.Queue()
	head := d.fleet.Task(q.Head())
	at := d.chosen(i, head)
	if at < 0 {
		d.queries.sendBack(q.Head())
		d.agenda.reduced.add(int(i.Stage()))
		return false
	}
	app, use, v := d.app(i.Stage()), i.Variant(at), &d.shown
	v.Now, v.Plan, v.Instance, v.SLO = d.now, d.force.plan, i, app.SLO.Latency
	v.MayDrop = app.Late == serving.DropLate && !head.Probe()
	v.Variant, v.Limit, v.Ready, v.Items = use.Variant, use.Limit, q.Len(), q.Items()
	if !q.Unconstrained() {
		d.viewConstrained(v, head)
	}
	d.may = allowance{drop: v.MayDrop, variant: v.Variant, limit: v.Limit, ready: v.Ready}
	return true
}

// chosen returns the index of the variant of i to use for the head of its queue: the router's choice, if the batcher
// runs that and it may serve the head, or fleet.View.Choose.
func (d *dispatch) chosen(i *fleet.Instance, head *fleet.Task) int {
	if c := i.Choice(); c != serving.None && d.followsChoice && head.Constrained() {
		if at := i.Find(c); at >= 0 && d.fleet.Accepts(head, c) && i.Serves(c) && head.Items() <= i.Variant(at).Limit {
			return at
		}
	}
	return d.fleet.Choose(i, head)
}

// viewConstrained prepares the view of a queue with constrained tasks: the batch ends at the first that cannot join it.
// A head that waited for a cold start is served although it is late.
func (d *dispatch) viewConstrained(v *batch.View, head *fleet.Task) {
	v.MayDrop = v.MayDrop && (head.ColdUntil() == 0 || head.ColdUntil() < d.now)
	v.Ready, v.Items = 0, 0
	for r := v.Instance.Queue().Head(); r != fleet.Nil && v.Items <= v.Limit; r = d.fleet.Next(r) {
		t := d.fleet.Task(r)
		if !d.fleet.Accepts(t, v.Variant) || t.Isolated() && v.Ready > 0 {
			v.Limit = min(v.Limit, v.Items) // no other task can join: the batch is full
			return
		}
		v.Ready++
		v.Items += t.Items()
		if t.Isolated() {
			v.Limit = min(v.Limit, v.Items)
			return
		}
	}
}

// later returns the time until which a batcher waits, which must be after now.
func (d *dispatch) later(until serving.Time) serving.Time {
	if until <= d.now {
		d.violated(fmt.Errorf("engine: batcher %q asked at %v to wait until %v", d.rule.Name(), d.now, until))
		return d.now + 1
	}
	return until
}

// restrict limits a batcher's decision to what is allowed, and records a violation where it was not.
func (d *dispatch) restrict(i *fleet.Instance, x *batch.Decision) {
	switch {
	case x.Action == batch.Drop && !d.may.drop:
		d.violated(fmt.Errorf("engine: batcher %q gave up a query under late policy serve-late", d.rule.Name()))
		*x = batch.Decision{Action: batch.Run, N: 1, Variant: d.may.variant}
	case x.Action == batch.Run && !d.runnable(i, x):
		d.violated(fmt.Errorf("engine: batcher %q asked for %d queries on variant %d; %d are ready, %d items may run",
			d.rule.Name(), x.N, x.Variant, d.may.ready, d.may.limit))
		n, _ := d.fleet.Prefix(i.Queue(), d.may.ready, d.may.limit)
		x.Variant, x.N = d.may.variant, max(min(x.N, n), 1)
	}
}

// runnable reports whether the batch that a batcher asked for may run on an instance.
func (d *dispatch) runnable(i *fleet.Instance, x *batch.Decision) bool {
	at := i.Find(x.Variant)
	if x.N < 1 || at < 0 || !i.Variant(at).Warm {
		return false
	}
	limit := i.Variant(at).Limit
	if x.Variant == d.may.variant {
		limit = d.may.limit
	}
	if n, _ := d.fleet.Prefix(i.Queue(), d.may.ready, limit); x.N > n {
		return false
	}
	if x.Variant == d.may.variant {
		return true
	}
	if i.Queue().Unconstrained() {
		return !d.spec.BelowFloor(x.Variant)
	}
	r := i.Queue().Head()
	for range x.N {
		if !d.fleet.Accepts(d.fleet.Task(r), x.Variant) {
			return false
		}
		r = d.fleet.Next(r)
	}
	return true
}

// start begins a batch of the first tasks in an instance's queue.
func (d *dispatch) start(i *fleet.Instance, x *batch.Decision) {
	items := 0
	first := len(d.out.tasks)
	r := i.Queue().Head()
	for range x.N {
		t := d.fleet.Task(r)
		items += t.Items()
		d.queries.count(t, -1)
		d.out.tasks = append(d.out.tasks, Task{
			Query: t.Query(), Items: int32(t.Items()), Offset: t.Offset(), Turn: t.TurnAt().Sub(t.ReadyAt()),
			Route: t.QueuedAt().Sub(t.TurnAt()), Queue: d.now.Sub(t.ReadyAt()),
		})
		r = d.fleet.Next(r)
	}
	if len(d.alone) > 0 {
		d.waitEnded(i, x.N)
	}
	d.lastBatch++
	expected := d.fleet.BatchLatency(x.Variant, i.DeviceType(), i.Queue().Head(), x.N, items, d.fleet.Concurrency(i)+1)
	d.queries.charge(i.Queue().Head(), x.N, items, expected)
	expected = d.fleet.Start(i, d.lastBatch, x.Variant, x.N, d.now, expected).Expected.Sub(d.now)
	b := d.out.ofVariant(StartBatch, Reason(x.Reason), i.ID(), x.Variant)
	b.Stage, b.Batch, b.Items, b.Expected = i.Stage(), d.lastBatch, int32(items), expected
	b.Tasks = d.out.tasks[first:len(d.out.tasks):len(d.out.tasks)]
}

// joinConcurrent makes batches that began in this step on a shared machine count each other, in whichever order they
// were started. Beliefs and learning then use the right concurrency.
func (d *dispatch) joinConcurrent() {
	for k := range d.out.list {
		x := &d.out.list[k]
		if x.Kind != StartBatch {
			continue
		}
		if expected, changed := d.fleet.RecountConcurrency(d.fleet.Instance(x.Instance), x.Batch); changed {
			x.Expected = expected
		}
	}
}

// finish takes a batch that has ended off its instance. It returns false for a lost or stopped instance, whose queries
// were sent elsewhere, and for a batch that does not run there.
func (d *dispatch) finish(in *Input) (i *fleet.Instance, b fleet.Batch, ok bool) {
	if i = d.fleet.Instance(in.Instance); i == nil {
		return nil, b, false
	}
	if b, ok = d.fleet.Finish(i, in.Batch, d.now); !ok {
		d.violated(fmt.Errorf("engine: batch %d reported done on instance %d, where it does not run", in.Batch,
			in.Instance))
	}
	return i, b, ok
}

// learn shows the batcher of an instance a batch that ended well.
func (d *dispatch) learn(i *fleet.Instance, b *fleet.Batch, late bool) {
	d.batcher(i.ID()).Finished(b.Tasks, late)
}

// finished tells a router that decides for all stages at once of a batch that has ended; took is 0 if it failed.
func (d *dispatch) finished(i *fleet.Instance, b *fleet.Batch, took time.Duration) {
	if d.agenda.global {
		d.routing.Finish(route.Ended{Instance: i.ID(), Took: took, Believed: b.Expected.Sub(b.Started),
			Overlaps: b.Overlaps})
	}
}
