package board

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// The rings hold so much unless that takes more than mostBytes; then they are shortened, down to leastBlocks.
const (
	seconds     = 15 * 60
	minutes     = 24 * 60
	leastBlocks = 120
	mostBytes   = 64 << 20
	mostPlans   = 48
	mostMissed  = 400
)

// Options configure a Board. Zero fields mean the defaults.
type Options struct {
	// Arrivals is how many of the latest arrivals are kept for Arrivals; default none.
	Arrivals int
	// Seconds is how many seconds are kept one by one; default a quarter of an hour. Less fit where there are many
	// apps.
	Seconds int
	// Measured are the latencies that were measured of the spec; nil where none were. Those of a growth replace them.
	// Learns says that the engine believes others: it learns.
	Measured profile.Profile
	Learns   bool
	// Ran is called on the owner goroutine with what is measured and every batch that has ended well, how many ran on
	// its instance, itself included, and what it was expected to take; nil for none. It must not call the board.
	Ran func(measured profile.Profile, v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
		took, expected time.Duration)
}

// Board is a view of an engine's log, under its lock. Any goroutine may call its methods.
type Board struct {
	log   *steps.Log
	spec  *serving.Spec
	now   serving.Time
	live  *block // of the second that runs
	fine  *ring  // of seconds
	rough *ring  // of minutes
	total block  // since the start

	machines machines
	marks    marks
	plans    plans
	missed   missed
	arrivals arrivals
	waiting  []int32 // by AppID: queries that have not ended
	o        Options
	measured profile.Profile // of spec
}

// New returns a Board that views the log of an engine with this spec. It keeps spec.
func New(spec *serving.Spec, log *steps.Log, o Options) *Board {
	if o.Seconds <= 0 {
		o.Seconds = seconds
	}
	b := &Board{
		log: log, spec: &serving.Spec{},
		fine: newRing(fitting(spec, o.Seconds)), rough: newRing(fitting(spec, minutes)),
		arrivals: newArrivals(o.Arrivals), o: o, measured: o.Measured,
	}
	b.missed.ring = make([]Missed, mostMissed)
	b.grow(spec)
	b.live = b.fine.next()
	b.live.reset(0, len(spec.Apps), len(spec.Variants), len(spec.Stages))
	b.roughTo(0)
	log.View(b.see)
	return b
}

// fitting returns how many blocks of a ring there may be, at most n.
func fitting(spec *serving.Spec, n int) int {
	each := 64 + len(spec.Apps)*(Buckets*4+96) + 4*(len(spec.Variants)+len(spec.Stages))
	return max(leastBlocks, min(n, mostBytes/2/each))
}

// grow takes a spec that has grown.
func (b *Board) grow(spec *serving.Spec) {
	fresh := spec.FreshSince(b.spec)
	if fresh.Within(b.spec) {
		b.forget(&fresh)
	}
	b.spec = spec
	b.shorten()
	b.waiting = serving.Cleared(b.waiting, fresh.Apps)
	for _, x := range []*block{b.live, b.rough.last(), &b.total} {
		if x == nil {
			continue
		}
		x.apps = extended(x.apps, len(spec.Apps))
		x.variants = extended(x.variants, len(spec.Variants))
		x.stages = extended(x.stages, len(spec.Stages))
	}
	b.machines.grow(spec)
}

// shorten keeps the rings within their bound of memory.
func (b *Board) shorten() {
	b.fine.shorten(fitting(b.spec, len(b.fine.blocks)))
	b.rough.shorten(fitting(b.spec, len(b.rough.blocks)))
	if b.live != nil {
		b.live = b.fine.last()
	}
}

// forget drops what is known of entries whose places in the tables are used again: it must not show under other names.
func (b *Board) forget(fresh *serving.Fresh) {
	for _, r := range []*ring{b.fine, b.rough} {
		for k := range r.blocks {
			r.blocks[k].forget(fresh)
		}
	}
	b.total.forget(fresh)
	for k := range b.arrivals.ring {
		if x := &b.arrivals.ring[k]; slices.Contains(fresh.Apps, x.App) {
			x.At = -1
		}
	}
	b.machines.forget(fresh)
}

func extended[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// see takes a step of the engine.
func (b *Board) see(s *steps.Step) {
	b.advance(s.Now)
	for k := range s.In {
		b.input(&s.In[k], s.Ended(k))
	}
	for k := range s.Out {
		b.decision(&s.Out[k], s.Started(k))
	}
}

// Advance has the time go on when no step does.
func (b *Board) Advance(now serving.Time) {
	b.log.Lock()
	defer b.log.Unlock()
	b.advance(now)
}

// advance closes the seconds that have passed.
func (b *Board) advance(now serving.Time) {
	if now < b.now {
		return
	}
	for {
		// The block's time ends with it, so that costs and busy time stay in the second in which they arose.
		end := serving.Time((b.live.at + 1) * int64(time.Second))
		until := min(now, end)
		b.machines.spend(b.now, until, b.live)
		b.now = until
		if now < end {
			return
		}
		b.rough.last().add(b.live)
		b.total.add(b.live)
		next := b.live.at + 1
		if gap := int64(now)/int64(time.Second) - next; gap > int64(len(b.fine.blocks)) {
			// Nobody can look back over so long an empty time. What it cost is counted at once.
			to := serving.Time((next + gap - 1) * int64(time.Second))
			b.machines.spend(b.now, to, &b.total)
			b.now, next = to, next+gap-1
		}
		b.live = b.fine.next()
		b.live.reset(next, len(b.spec.Apps), len(b.spec.Variants), len(b.spec.Stages))
		if minute := next / 60; minute > b.rough.last().at {
			b.roughTo(minute)
		}
	}
}

func (b *Board) roughTo(minute int64) {
	b.rough.next().reset(minute, len(b.spec.Apps), len(b.spec.Variants), len(b.spec.Stages))
}

func (b *Board) input(x *engine.Input, of *steps.Batch) {
	switch x.Kind {
	case engine.SpecGrown:
		b.grow(x.Growth.Spec)
		b.measured = x.Growth.Profile
		b.plans.grown()
	case engine.QueryArrived:
		if a := x.Query.App; b.known(a) {
			b.live.apps[a].offered++
			b.waiting[a]++
			b.arrivals.add(&x.Query)
		}
	case engine.BatchDone:
		i := b.machines.ended(b.now, of)
		if i == nil {
			return
		}
		app, tasks := &b.live.apps[b.spec.Stages[of.Stage].App], len(of.Tasks)
		app.ended += uint32(tasks)
		app.runs += time.Duration(tasks) * x.Took
		if x.Result == engine.OK {
			b.live.variants[of.Variant] += uint32(tasks)
			if b.o.Ran != nil {
				b.o.Ran(b.measured, of.Variant, i.device, int(of.Items), len(i.running)+1, x.Took, of.Expected)
			}
		}
	case engine.InstanceChanged:
		b.machines.changed(b.now, x)
	case engine.PriceChanged:
		b.machines.priced(x.DeviceType, x.Price)
	case engine.PlanReady:
		b.plans.made(b.now, b.spec, x.Plan)
		b.machines.planned(x.Plan)
	case engine.PlanFailed:
		b.plans.failed(b.now, b.spec, x.Failure)
	}
}

func (b *Board) decision(d *engine.Decision, of *steps.Batch) {
	switch d.Kind {
	case engine.StartBatch:
		b.started(d)
		b.machines.started(of)
	case engine.EndQuery:
		b.ended(d)
	case engine.LaunchInstance:
		b.machines.launched(b.now, d)
	case engine.StopInstance:
		b.machines.stopped(b.now, d.Instance)
	case engine.KeepInstance, engine.ResumeInstance:
		b.machines.kept(d.Instance, d.Kind == engine.KeepInstance)
	case engine.LoadVariant:
		b.machines.loads(d.Instance, d.Variant)
	case engine.UnloadVariant:
		b.machines.unloaded(b.now, d.Instance, d.Variant)
	case engine.RequestPlan:
		b.plans.asked(b.now, d)
	case engine.KeepPlan:
		b.plans.failed(b.now, b.spec, d.Failure)
	}
}

func (b *Board) known(a serving.AppID) bool { return a >= 0 && int(a) < len(b.live.apps) }

func (b *Board) started(d *engine.Decision) {
	app := &b.live.apps[b.spec.Stages[d.Stage].App]
	app.batches++
	app.items += uint32(d.Items)
	app.tasks += uint32(len(d.Tasks))
	b.live.stages[d.Stage] += uint32(len(d.Tasks))
	for k := range d.Tasks {
		t := &d.Tasks[k]
		app.routed += t.Turn + t.Route
		app.held += max(0, t.Queue-t.Turn-t.Route)
	}
}

func (b *Board) ended(d *engine.Decision) {
	if !b.known(d.App) {
		return
	}
	app := &b.live.apps[d.App]
	b.waiting[d.App] = max(0, b.waiting[d.App]-1)
	took := b.now.Sub(d.Arrived)
	switch d.Outcome {
	case serving.Served:
		app.served++
		app.accuracy += d.Accuracy
		if d.Second {
			app.second++
		}
		app.latency[bucketOf(took)]++
		if took > b.spec.Apps[d.App].SLO.Latency {
			app.beyond++
		}
		if !d.Late {
			return
		}
		app.late++
	case serving.Dropped:
		app.dropped++
	case serving.Refused:
		app.refused++
	case serving.Failed:
		app.failed++
	case serving.Cancelled:
		app.cancelled++
		return
	}
	b.missed.add(Missed{
		Query: d.Query, App: b.spec.Apps[d.App].Name, AtS: b.now.Seconds(), LatencyMS: float64(took) / 1e6,
		Outcome: d.Outcome.String(), Late: d.Late, Reason: d.Reason.String(),
	})
}
