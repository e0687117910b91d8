package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// Engine is the state machine. Each owner has a table and a rule. The engine calls the owners in order, and owners call
// only those before them. It is not safe for concurrent use: one driver owns it.
type Engine struct {
	*world
	out        *decisions
	agenda     *agenda
	usage      *usage
	force      *inForce
	beliefs    *beliefs
	content    *content
	queries    *queries
	health     *health
	instances  *instances
	warm       *keepWarm
	lifecycle  *lifecycle
	handover   *handover
	dispatch   *dispatch
	replanning *replanning
	caps       *caps
}

// New checks the composition and returns an engine without instances. The first plan comes as an input. It keeps what c
// points to.
func New(c Config) (*Engine, error) {
	if c.Scaler == nil {
		c.Scaler = scale.Fixed{}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Attempts <= 0 {
		c.Attempts = 3
	}
	can := c.Scaler.Traits()
	w, out := newWorld(c.Spec, c.Profile), &decisions{}
	if c.Batcher.Traits().Unbatched {
		w.fleet.SetUnbatched()
	}
	agenda := newAgenda(w, c.Router.Traits().Global)
	usage := newUsage(w, agenda)
	force := newInForce(w)
	beliefs := newBeliefs(w, agenda, c.Profile)
	content := newContent(w, beliefs, can.Follows)
	admission := &admission{world: w, force: force, wakes: can.Waker != nil, rents: rents(&c)}
	queries := newQueries(w, agenda, out, admission, beliefs, min(c.Attempts, 255))
	queries.seconds = c.Router.Traits().Seconds
	health, backoff, places := newHealth(w, agenda), newBackoff(w), newPlaces(w, force)
	machines := newMachines(w, agenda, beliefs)
	instances := &instances{world: w, agenda: agenda, out: out, usage: usage, places: places}
	warm := &keepWarm{
		world: w, agenda: agenda, out: out, force: force, health: health, instances: instances, places: places,
		delay: c.TurnOff,
	}
	lifecycle := &lifecycle{
		world: w, agenda: agenda, out: out, force: force, queries: queries, health: health, backoff: backoff,
		machines: machines, instances: instances,
	}
	return &Engine{
		world: w, out: out, agenda: agenda, usage: usage, force: force, beliefs: beliefs, content: content,
		queries: queries, health: health, instances: instances, warm: warm, lifecycle: lifecycle,
		handover: &handover{
			world: w, agenda: agenda, force: force, queries: queries, backoff: backoff, instances: instances,
			places: places, warm: warm, lifecycle: lifecycle,
		},
		dispatch: newDispatch(w, agenda, out, force, queries, instances, &c),
		replanning: &replanning{
			world: w, agenda: agenda, out: out, usage: usage, force: force, beliefs: beliefs, content: content,
			queries: queries, health: health, machines: machines, scaler: c.Scaler, traits: can,
		},
		caps: &caps{world: w, agenda: agenda, out: out, force: force, beliefs: beliefs, queries: queries},
	}, nil
}

// rents reports whether machines are rented by plans that are made again.
func rents(c *Config) bool {
	_, fixed := c.Scaler.(scale.Fixed)
	return !fixed && c.Spec.Rents()
}

// Step applies the inputs of one instant, in the order of Sort, and returns what is to be done. now must not be before
// that of the last call. It never blocks and, in the steady state, does not allocate. It does not keep in, but keeps
// plans, specs and profiles in it. The returned slice, and the slices in it, are valid until the next Step.
func (e *Engine) Step(now serving.Time, in []Input) []Decision {
	if now < e.now {
		e.violated(fmt.Errorf("engine: now went back from %v to %v", e.now, now))
		now = e.now
	}
	e.now = now
	e.out.reset()
	e.beliefs.changed = false
	for i := range in {
		e.apply(&in[i])
	}
	e.beliefs.update()
	e.work()
	e.replanning.decide()
	if e.beliefs.changed {
		e.work() // with the new beliefs
	}
	e.dispatch.joinConcurrent()
	return e.out.list
}

// apply applies one input.
func (e *Engine) apply(in *Input) {
	switch in.Kind {
	case BatchDone:
		e.batchDone(in)
	case MachineChanged:
		e.lifecycle.machineChanged(in)
	case InstanceChanged:
		if i := e.fleet.Instance(in.Instance); i != nil {
			e.lifecycle.changed(i, in)
			e.handover.retire()
		}
	case PriceChanged:
		e.usage.setPrice(in.DeviceType, in.Price)
	case SpecGrown:
		e.grow(in.Growth)
	case IdleRecalled:
		e.replanning.recall(in.Recalled)
	case StreamOpened:
		e.replanning.streamOpened(in.Query.App, in.Query.Stream, in.Rate)
	case StreamClosed:
		e.replanning.streamClosed(in.Query.App, in.Query.Stream)
	case PlanReady:
		e.adopt(in.Plan)
	case PlanFailed:
		e.keepPlan(PlanningFailed, in.Failure)
	case QueryArrived:
		if e.queries.isForOpenApp(&in.Query) {
			e.replanning.arrived(in.Query.App)
			e.queries.accept(&in.Query)
		}
	case QueryCancelled:
		e.queries.cancel(in.Query.ID)
	}
}

// batchDone takes a batch that has ended off its instance, learns from it, and passes its tasks on.
func (e *Engine) batchDone(in *Input) {
	i, b, ok := e.dispatch.finish(in)
	if !ok {
		return
	}
	if in.Result == OK {
		taken := e.beliefs.lengths.took(i, &b, e.now.Sub(b.Started), in.Took)
		e.beliefs.observe(i, &b, taken)
		e.content.count(i, &b, taken, in.Emitted)
	}
	if in.Result == Exceeded {
		e.caps.exceeded(i, &b)
	}
	late := e.queries.batchEnded(i, &b, in)
	took := time.Duration(0)
	if in.Result == OK {
		e.dispatch.learn(i, &b, late)
		took = in.Took
	}
	e.instances.unloadUnwanted(i)
	e.dispatch.finished(i, &b, took)
	e.agenda.touchSharing(i)
	e.agenda.touch(i)
	if e.fleet.Central(i.Stage()).Len() > 0 {
		e.agenda.routeStage(i.Stage())
	}
	if in.Result == OK && e.queries.faults.endedWell(i.ID()) {
		e.lifecycle.backoff.passed(i.Key())
	}
	e.queries.endTrial(i, max(in.Took, b.Expected.Sub(b.Started)))
	if e.lifecycle.eject() {
		e.handover.retire()
	}
}

// adopt puts a plan into force, unless it answers an older request than the last.
func (e *Engine) adopt(p *plan.Plan) {
	if e.replanning.stale(p.Snapshot) {
		return
	}
	if err := p.Validate(e.spec); err != nil {
		e.keepPlan(PlanInvalid, &PlanFailure{Seq: p.Snapshot, Err: err.Error()})
		return
	}
	p = e.caps.within(e.replanning.answered(p))
	e.force.set(p)
	e.beliefs.setBudgets(p.Budgets)
	e.handover.adopt()
	for s := range e.spec.Stages {
		e.agenda.routeStage(serving.StageID(s))
		e.queries.endUnservable(serving.StageID(s))
	}
	e.queries.endUnplaced()
}

// keepPlan records that a request led to no plan. It ignores a failure of an older request than the last.
func (e *Engine) keepPlan(why Reason, f *PlanFailure) {
	if f == nil {
		e.violated(errors.New("engine: planning failed, and not which"))
		return
	}
	if e.replanning.stale(f.Seq) {
		return
	}
	if f.Err != "" {
		e.out.add(KeepPlan, why).Failure = f
	}
	if e.replanning.failed(f.Seq) {
		e.queries.endUnplaced()
	}
}

// grow replaces the spec by a larger one.
func (e *Engine) grow(g *Growth) {
	if g == nil || g.Spec == nil || g.Profile == nil && e.beliefs.learner == nil {
		e.violated(errors.New("engine: growth without a spec or a profile"))
		return
	}
	if err := errors.Join(g.Spec.Validate(), g.Spec.CheckGrowth(e.spec)); err != nil {
		e.violated(fmt.Errorf("engine: growth: %w", err))
		return
	}
	fresh := g.Spec.FreshSince(e.spec)
	if err := e.checkFresh(&fresh); err != nil {
		e.violated(fmt.Errorf("engine: growth: %w", err))
		return
	}
	e.agenda.grow(g.Spec, fresh.Stages)
	e.spec = g.Spec
	e.fleet.Grow(g.Spec, fresh.Stages)
	e.monitor.Grow(fresh.Apps)
	e.beliefs.grow(g.Profile, &fresh)
	e.content.grow(fresh.Stages)
	e.queries.grow(&fresh)
	e.health.grow(fresh.Variants)
	e.caps.forget(fresh.Variants)
	e.queries.doubts.forget(fresh.Variants)
	e.dispatch.grow(&fresh)
	e.warm.evictUseless()
	e.beliefs.recompute()
	e.replanning.grow(&g.Known, &fresh)
}

// work does everything that can be done now.
func (e *Engine) work() {
	e.expire()
	e.settle()
	// A task may be too late at once after a move to a slower instance or a broken batch.
	for e.agenda.next() <= e.now {
		e.expire()
		e.settle()
	}
	for len(e.queries.closing) > 0 {
		closed, changed := e.queries.endClosed()
		if closed {
			e.handover.retire()
		}
		if !changed {
			break
		}
		e.settle()
	}
}

// expire gives up queries that are too late, calls batchers at the times they asked for, and ends turn-off delays and
// back-offs.
func (e *Engine) expire() {
	for s, id, ok := e.agenda.due(); ok; s, id, ok = e.agenda.due() {
		if s == serving.None {
			e.agenda.called = true
			continue
		}
		if id == 0 {
			e.queries.endExpired(e.fleet.Central(s), s)
			e.queries.letGoDue(s)
			e.queries.endExpired(e.fleet.AwaitingTurn(s), s)
			e.queries.letGoDue(s)
			e.agenda.setStageTimer(s)
			continue
		}
		i := e.fleet.Instance(id)
		if i == nil {
			continue
		}
		if i.Wake() <= e.now {
			e.fleet.SetWake(i, serving.Never)
			e.agenda.touch(i)
		}
		if until := i.RestUntil(); until > 0 && until <= e.now {
			e.queries.endRest(i)
		}
		e.queries.endExpired(i.Queue(), i.Stage())
		e.queries.letGoDue(i.Stage()) // one that was put back may be held back now
		if until := i.WarmUntil(); until > 0 && until <= e.now {
			e.warm.evict(i)
			continue
		}
		e.agenda.setInstanceTimer(i)
	}
	e.queries.answerDue()
	e.lifecycle.machines.expire()
	e.handover.relaunch()
}

// settle routes and batches until nothing more can be done now. It ends, because every round moves a task from a
// central queue to an instance or from an instance into a batch.
func (e *Engine) settle() {
	a := e.agenda
	for a.stages.any() || a.instances.any() || a.freed.any() || a.reduced.any() || a.called {
		e.handover.proceed()
		if a.global && (a.stages.any() || a.called) {
			e.dispatch.routeAll()
		}
		for at := 0; at < len(a.stages.list); at++ {
			s := a.stages.list[at]
			a.stages.taken(s)
			e.dispatch.route(serving.StageID(s))
		}
		a.stages.empty()
		for at := 0; at < len(a.instances.list); at++ {
			id := a.instances.list[at]
			a.instances.taken(id)
			e.dispatch.fill(serving.InstanceID(id))
		}
		a.instances.empty()
		for at := 0; at < len(a.reduced.list); at++ {
			s := a.reduced.list[at]
			a.reduced.taken(s)
			e.queries.endUnservable(serving.StageID(s))
		}
		a.reduced.empty()
	}
}

// NextWake returns when Step is to be called if nothing happens before; serving.Never when only an input can change
// anything.
func (e *Engine) NextWake() serving.Time {
	return min(e.agenda.next(), e.queries.nextAnswer(), e.handover.next(), e.lifecycle.machines.next(),
		e.replanning.next())
}
