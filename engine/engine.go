package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/algo/pq"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Config is a composition and the world it works in.
type Config struct {
	Spec    *serving.Spec
	Profile profile.Profile
	Router  route.Router
	Batcher batch.Rule
	Scaler  scale.Scaler
	// Provides lists the sections that plans handed to this engine will carry.
	Provides plan.Sections
	// Attempts is how often a query may run before it counts as failed; 0 means 3.
	Attempts int
	// TurnOff is how long an instance that a plan has dropped stays loaded and idle, so that a later plan can take it
	// up again without a load (Scrooge §3.6); 0 stops it at once.
	TurnOff time.Duration
}

// Engine is the state machine. It is not safe for concurrent use: one driver owns it.
type Engine struct {
	spec     *serving.Spec
	profile  profile.Profile
	learner  profile.Learner // profile, where it learns; nil otherwise
	epoch    uint64          // of the learner, that what is derived from it was derived at
	hopeless int             // queries that were believed to be so while instances were idle
	router   route.Router
	rule     batch.Rule
	scaler   scale.Scaler
	waker    scale.Waker // scaler, where it is one; nil otherwise
	attempts uint8

	fleet    *fleet.Fleet
	monitor  *monitor.Rates
	batchers []batch.Batcher // by instance ID - 1; nil once stopped

	now   serving.Time
	out   []Decision
	parts []Part
	times []StageTime
	fault error // the first broken rule of a driver or a policy

	ids     table
	records []record
	free    []fleet.Ref
	waiting []int          // by app: tasks that wait
	pending []int          // by app: accepted queries that have not ended
	idle    []serving.Time // by app: since when none is pending; Never while one is
	used    usage
	flows   []flow
	streams streams
	spare   []int32
	place   []int           // by stage: position in its app's Stages
	tails   []time.Duration // by stage: what is to be left of a query's time when it is done, as the plan has it
	needs   []time.Duration // the same, if later stages have nobody wait; tails where the plan does not say

	nextBatch serving.BatchID
	timers    pq.Heap // central queues by stage, then instances by ID
	stages    dirty
	instances dirty
	bereft    dirty // stages where a variant has gone that something may wait for
	routing   route.View
	batching  batch.View
	scaling   scale.View

	plan       *plan.Plan
	planned    map[fleet.Key]plan.Instance
	holders    map[fleet.Key]*fleet.Instance // the live instance that stands for a place of the plan
	workers    [][]*fleet.Instance           // by worker: live instances, oldest first
	freed      dirty                         // workers on which something has gone
	delayed    []delayed
	coming     []bool
	relaunches []relaunch
	failures   map[fleet.Key]int
	machines   []health     // by worker
	models     []health     // by variant
	shifted    serving.Time // when something that plans are made from last changed
	prices     []float64    // by device type, in $/h; nil before one has changed
	request    uint64       // Seq of the last plan request
	asked      bool
	lastAsk    serving.Time
	scaleAt    serving.Time
	scaleDirty bool
	grown      bool            // the spec has grown since the plan in force was made
	again      serving.Time    // when a plan for it is asked for again after one has failed
	leaving    []serving.AppID // closed apps of which queries have not ended
	altered    bool            // the profile is not the one the engine was made with
	transition bool            // instances of an older plan still stand in for ones that are launching

	content complexity
	turnOff time.Duration
}

// dirty is a set of small integers in the order in which they were added.
type dirty struct {
	list []int32
	in   []bool
}

func (d *dirty) add(i int) {
	for len(d.in) <= i {
		d.in = append(d.in, false)
	}
	if !d.in[i] {
		d.in[i] = true
		d.list = append(d.list, int32(i))
	}
}

func (d *dirty) done(i int32) { d.in[i] = false }

// New checks the composition and returns an engine with nothing running. The first plan comes as an input.
func New(c Config) (*Engine, error) {
	if c.Spec == nil || c.Profile == nil || c.Router == nil || c.Batcher == nil {
		return nil, errors.New("engine: spec, profile, router and batcher are required")
	}
	if err := c.Spec.Validate(); err != nil {
		return nil, err
	}
	if c.Scaler == nil {
		c.Scaler = scale.Fixed{}
	}
	for _, part := range []struct {
		kind, name string
		needs      plan.Sections
	}{
		{"router", c.Router.Name(), c.Router.Needs()}, {"batcher", c.Batcher.Name(), c.Batcher.Needs()},
		{"scaler", c.Scaler.Name(), c.Scaler.Needs()},
	} {
		if lacks := part.needs &^ c.Provides; lacks != 0 {
			return nil, fmt.Errorf("engine: %s %q needs the plan's %v, which this planner does not provide: choose "+
				"another planner or %s", part.kind, part.name, lacks, part.kind)
		}
	}
	if c.Attempts <= 0 {
		c.Attempts = 3
	}
	e := &Engine{
		spec: c.Spec, profile: c.Profile, router: c.Router, rule: c.Batcher, scaler: c.Scaler,
		attempts: uint8(min(c.Attempts, 255)), turnOff: c.TurnOff,
		fleet: fleet.New(c.Spec, c.Profile), monitor: monitor.NewRates(len(c.Spec.Apps)), ids: newTable(),
		waiting: make([]int, len(c.Spec.Apps)), pending: make([]int, len(c.Spec.Apps)),
		idle: make([]serving.Time, len(c.Spec.Apps)), used: usage{workers: make([]worker, len(c.Spec.Workers))},
		place:   make([]int, len(c.Spec.Stages)),
		planned: make(map[fleet.Key]plan.Instance), failures: make(map[fleet.Key]int), scaleDirty: true,
		holders: make(map[fleet.Key]*fleet.Instance), workers: make([][]*fleet.Instance, len(c.Spec.Workers)),
		machines: make([]health, len(c.Spec.Workers)), models: make([]health, len(c.Spec.Variants)),
	}
	e.learner, _ = c.Profile.(profile.Learner)
	e.waker, _ = c.Scaler.(scale.Waker)
	e.follow()
	if l, ok := c.Batcher.(batch.Loner); ok {
		e.fleet.Alone = l.Alone()
	}
	for _, a := range c.Spec.Apps {
		for at, s := range a.Stages {
			e.place[s] = at
		}
	}
	e.streams.grow(c.Spec)
	e.needs = e.leastTails()
	e.tails = e.needs
	return e, nil
}

// Fleet gives read access to what runs and waits.
func (e *Engine) Fleet() *fleet.Fleet { return e.fleet }

// Spec returns the world as it is.
func (e *Engine) Spec() *serving.Spec { return e.spec }

// Plan returns the plan in force, or nil.
func (e *Engine) Plan() *plan.Plan { return e.plan }

// Planned tells whether the plan in force was made for the world as it is.
func (e *Engine) Planned() bool { return !e.grown }

// Broken tells whether a variant could not be loaded of late, several times in a row.
func (e *Engine) Broken(v serving.VariantID) bool { return e.models[v].bad(e.now, brokenAfter) }

// Pending returns how many accepted queries have not ended.
func (e *Engine) Pending() int { return e.ids.n }

// Waiting returns how many tasks of an app wait.
func (e *Engine) Waiting(a serving.AppID) int { return e.waiting[a] }

// Step takes the inputs of one instant, in the order of Sort, and returns what is to be done. It never blocks and, in
// the steady state, does not allocate. The returned slice is valid until the next Step.
func (e *Engine) Step(now serving.Time, in []Input) []Decision {
	if now < e.now {
		e.blame(fmt.Errorf("engine: now went back from %v to %v", e.now, now))
		now = e.now
	}
	e.now = now
	e.out, e.parts, e.times = e.out[:0], e.parts[:0], e.times[:0]
	for i := range in {
		e.apply(&in[i])
	}
	e.believe()
	e.work()
	e.rescale()
	if e.content.turned {
		e.content.turned = false
		e.work() // by what is believed now
	}
	e.beginTogether()
	return e.out
}

// work does all that can be done now.
func (e *Engine) work() {
	e.expire()
	e.settle()
	// A task that was given to a slower instance, or came back from a batch, may be hopeless at once.
	for e.timerDue() {
		e.expire()
		e.settle()
	}
	for len(e.leaving) > 0 && e.seeOff() {
		e.settle()
	}
}

func (e *Engine) apply(in *Input) {
	switch in.Kind {
	case BatchDone:
		e.batchDone(in)
	case InstanceChanged:
		e.instanceChanged(in)
	case PriceChanged:
		e.reprice(in)
	case SpecGrown:
		e.grow(in.Growth)
	case IdleRecalled:
		e.recall(in.Recalled)
	case StreamOpened:
		e.streamOpened(in)
	case StreamClosed:
		e.streamClosed(in)
	case PlanReady:
		e.adopt(in.Plan)
	case PlanFailed:
		if in.Seq == e.request {
			e.asked, e.scaleDirty = false, true
			e.again = e.now.Add(planAgain)
			e.turnAway()
		}
	case QueryArrived:
		e.arrive(&in.Query)
	case QueryCancelled:
		e.cancel(in.Query.ID)
	}
}

// NextWake returns when Step is to be called if nothing happens before; serving.Never when only an input can change
// anything.
func (e *Engine) NextWake() serving.Time {
	wake := e.scaleAt
	if e.scaleAt == 0 {
		wake = serving.Never
	}
	if _, at, ok := e.timers.Min(); ok {
		wake = min(wake, serving.Time(at))
	}
	for _, r := range e.relaunches {
		wake = min(wake, r.at)
	}
	if e.grown && !e.asked {
		wake = min(wake, max(e.again, e.now+1))
	}
	return wake
}

func (e *Engine) timerDue() bool {
	_, at, ok := e.timers.Min()
	return ok && serving.Time(at) <= e.now
}

// expire gives up, on time, whatever can no longer be served, and wakes batchers that asked for it.
func (e *Engine) expire() {
	for {
		at, key, ok := e.timers.Min()
		if !ok || serving.Time(key) > e.now {
			break
		}
		e.timers.Remove(at)
		if at < len(e.spec.Stages) {
			s := serving.StageID(at)
			e.dropExpired(e.fleet.Central(s), s)
			e.dropExpired(e.fleet.Turns(s), s)
			e.timeStage(s)
			continue
		}
		i := e.fleet.Instance(serving.InstanceID(at - len(e.spec.Stages)))
		if i == nil {
			continue
		}
		if i.Wake <= e.now {
			i.Wake = serving.Never
			e.touch(i)
		}
		e.dropExpired(&i.Queue, i.Stage)
		if i.Kept > 0 && i.Kept <= e.now {
			e.goes(i)
			continue
		}
		e.timeInstance(i)
	}
	e.relaunch()
}

// dropExpired ends the queries of q that could not be in time even if they started now. With late policy serve-late it
// it ends those whose patience is over, if that has an end.
func (e *Engine) dropExpired(q *fleet.Queue, s serving.StageID) {
	if !e.spec.Apps[e.spec.Stages[s].App].Drops() {
		return
	}
	if e.fleet.EarliestDrop(q) >= e.now {
		return
	}
	alike := q.Plain() && q.Unit() && e.fleet.Uniform(q) // then they expire in order
	moves := len(e.spec.Apps[e.spec.Stages[s].App].Stages) > 1 || e.spec.Stages[s].Stateful
	for r := q.Head(); r != fleet.Nil; {
		next := e.fleet.Next(r)
		if t := e.fleet.Task(r); t.DropAt < e.now {
			e.end(t.Record, serving.Dropped, WaitedTooLong)
			if moves {
				// ending a query removes its other tasks and gives one of its stream the turn, next perhaps among them
				next = q.Head()
			}
		} else if alike {
			break
		}
		r = next
	}
}

// timeStage sets the timer of what waits at a stage: the first instant at which its first hopeless query is to be
// dropped.
func (e *Engine) timeStage(s serving.StageID) {
	if !e.spec.Apps[e.spec.Stages[s].App].Drops() {
		return
	}
	e.timer(int(s), afterDrop(min(e.fleet.EarliestDrop(e.fleet.Central(s)), e.fleet.EarliestDrop(e.fleet.Turns(s)))))
}

// timeInstance sets the timer of an instance: its batcher's wish, the first drop in its queue, or the end of its rest.
func (e *Engine) timeInstance(i *fleet.Instance) {
	at := i.Wake
	if i.Kept > 0 {
		at = min(at, i.Kept)
	}
	if e.spec.Apps[e.spec.Stages[i.Stage].App].Drops() {
		at = min(at, afterDrop(e.fleet.EarliestDrop(&i.Queue)))
	}
	e.timer(len(e.spec.Stages)+int(i.ID), at)
}

func (e *Engine) timer(at int, when serving.Time) {
	if when == serving.Never {
		e.timers.Remove(at)
		return
	}
	e.timers.Set(at, int64(when))
}

// afterDrop is the first instant at which a query with the given latest start is too late.
func afterDrop(latest serving.Time) serving.Time {
	if latest == serving.Never {
		return serving.Never
	}
	return latest + 1
}

func (e *Engine) touch(i *fleet.Instance) { e.instances.add(int(i.ID)) }

// rescale asks the scaler when it is due or the fleet changed.
func (e *Engine) rescale() {
	overdue := e.grown && !e.asked && e.now >= e.again
	if !e.scaleDirty && !overdue && (e.scaleAt == 0 || e.now < e.scaleAt) {
		return
	}
	e.scaleDirty = false
	e.scaling = scale.View{
		Now: e.now, Spec: e.spec, Fleet: e.fleet, Monitor: e.monitor, Plan: e.plan, Asked: e.asked, LastAsk: e.lastAsk,
		Shifted: e.shifted, Waiting: e.waiting, Idle: e.idle, Factors: e.content.factors,
	}
	replan, again := e.scaler.Decide(&e.scaling)
	e.scaleAt = again
	if again <= e.now {
		e.blame(fmt.Errorf("engine: scaler %q asked to be called again at %v, which is not after %v", e.scaler.Name(),
			again, e.now))
		e.scaleAt = serving.Never
	}
	if (!replan && !overdue) || e.asked {
		return
	}
	e.request++
	e.asked, e.lastAsk = true, e.now
	d := Decision{
		Kind: RequestPlan, Reason: Asked, Spec: e.spec, Snapshot: e.snapshot(),
		Rates: make([]float64, len(e.spec.Apps)), Mixes: e.mixes(), Prices: slices.Clone(e.prices),
	}
	e.scaler.Demand(&e.scaling, d.Rates)
	e.observed(&d)
	e.raise(d.Rates)
	if e.learner != nil {
		d.Beliefs = e.learner.Frozen()
	} else if e.altered || e.content.ballooned {
		d.Beliefs = e.profile
	}
	e.out = append(e.out, d)
}

func (e *Engine) blame(err error) {
	if e.fault == nil {
		e.fault = err
	}
}

// leastTails returns, by stage, the least time believed to be needed after it: the part of a query's budget that later
// stages must be left.
func (e *Engine) leastTails() []time.Duration {
	return e.tailsOf(e.least)
}

// least is the least time believed to be needed at a stage.
func (e *Engine) least(s serving.StageID) time.Duration {
	best := profile.Unknown
	for _, v := range e.spec.Stages[s].Variants {
		if e.spec.Variants[v].Retired {
			continue
		}
		for _, w := range e.spec.Workers {
			best = min(best, e.profile.Latency(v, w.DeviceType, 1, 1))
		}
	}
	if best == profile.Unknown {
		return 0
	}
	return best
}

// tailsOf is by stage what is to be left of a query's time when the stage is done: what later stages need, and the
// slack.
func (e *Engine) tailsOf(need func(serving.StageID) time.Duration) []time.Duration {
	tails := make([]time.Duration, len(e.spec.Stages))
	for _, a := range e.spec.Apps {
		for at := len(a.Stages) - 1; at >= 0; at-- {
			s := a.Stages[at]
			tails[s] = a.Slack
			for _, edge := range e.spec.Stages[s].Next {
				tails[s] = max(tails[s], tails[edge.To]+need(edge.To))
			}
		}
	}
	return tails
}
