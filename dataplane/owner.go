package dataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// watchInterval is the time between two looks for batches that take too long and for leases that have expired.
const watchInterval = time.Second

// yield decides whether the owner lets goroutines that are ready to send a message do so before it empties the inbox,
// so that one step takes what would otherwise be several: at high rates a query's time goes into steps. Where messages
// come one at a time there is nothing to gather, and the detour would only cost time. So it looks at how many a detour
// has gathered lately, and tries again now and then.
type yield struct {
	tried   bool    // before this wake-up
	lately  float64 // messages after a detour, a moving average
	wakeUps uint
}

const (
	yieldFrom   = 1.2  // messages on average from which the detour pays
	yieldMemory = 0.05 // weight of the latest detour in the average
	yieldProbe  = 16   // wake-ups until the next try
)

func (y *yield) giveWay() {
	y.wakeUps++
	if y.tried = y.lately >= yieldFrom || y.wakeUps%yieldProbe == 0; y.tried {
		runtime.Gosched()
	}
}

// took notes how many messages a wake-up had.
func (y *yield) took(n int) {
	if y.tried && n > 0 {
		y.lately += yieldMemory * (float64(n) - y.lately)
	}
}

// loop is the owner goroutine: it alone uses the engine.
func (p *Plane) loop() {
	defer close(p.done)
	defer p.crashing()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for k := range p.c.Recalled {
		p.in = append(p.in, engine.NewIdleRecalled(&p.c.Recalled[k]))
	}
	if p.c.Initial != nil {
		p.in = append(p.in, engine.NewPlanReady(p.c.Initial))
	}
	if len(p.in) > 0 {
		engine.Sort(p.in)
		p.step(0)
	}
	watched := p.Now()
	for p.ctx.Err() == nil {
		now := p.Now()
		next := p.c.Engine.NextWake()
		if len(p.jobs) > 0 || p.leased.Load() > 0 {
			next = min(next, watched.Add(watchInterval))
		}
		if next > now {
			p.sleep(timer, next, now)
		}
		p.yield.giveWay()
		if p.c.Settle != nil {
			p.c.Settle()
		}
		now = p.Now()
		if p.leased.Load() > 0 && now.Sub(watched) >= watchInterval {
			p.expireLeases(now)
		}
		p.gather()
		if now.Sub(watched) >= watchInterval {
			watched = now
			p.reportOverdue(now)
		}
		p.step(now)
	}
	p.shutDown()
}

// crashing has a panic of the owner told before it ends the process: nothing can be served without the engine.
func (p *Plane) crashing() {
	if x := recover(); x != nil {
		if p.c.Crash != nil {
			p.c.Crash(p.Now(), p.in, &Panic{What: "engine", Value: x, Stack: debug.Stack()})
		}
		panic(x)
	}
}

// sleep returns when a message has come, when it is the time next, or when the plane ends.
func (p *Plane) sleep(timer *time.Timer, next, now serving.Time) {
	if next == serving.Never {
		select {
		case <-p.wake:
		case <-p.ctx.Done():
		}
		return
	}
	timer.Reset(next.Sub(now))
	select {
	case <-p.wake:
	case <-timer.C:
		p.slack.timer.add(p.Now().Sub(next))
	case <-p.ctx.Done():
	}
}

// gather empties the inbox and turns the messages into inputs, in the order that the engine requires.
func (p *Plane) gather() {
	p.mu.Lock()
	batch := p.inbox
	p.inbox = p.spare[:0]
	p.mu.Unlock()
	p.yield.took(len(batch))
	for k := range batch {
		m := &batch[k]
		switch {
		case m.ask != nil:
			m.ask(p.c.Engine)
		case m.look != nil:
			p.looks = append(p.looks, m.look)
		case m.job != nil:
			p.finish(m)
		default:
			maps.Copy(p.graphs, m.graphs)
			if m.call != nil {
				p.refuseGone(m) // a growth of this instant comes before it
				p.calls[m.in.Query.ID] = m.call
			}
			if !engine.Stale(p.c.Engine, &m.in) {
				p.in = append(p.in, m.in)
			}
		}
		*m = message{}
	}
	p.spare = batch
	engine.Sort(p.in)
}

// refuseGone has a query refused whose app, or the variant that it is pinned to, is gone: another one has its place.
func (p *Plane) refuseGone(m *message) {
	if q := &m.in.Query; m.call.gone || !m.call.request.Current(p.spec()) {
		q.App, q.Variant, m.call.gone = serving.None, serving.None, true
	}
}

// step steps the engine with the inputs that were gathered, and carries its decisions out.
func (p *Plane) step(now serving.Time) {
	out := p.c.Engine.Step(now, p.in)
	if p.c.Observe != nil {
		p.c.Observe(now, p.in, out)
	}
	clear(p.in)
	p.in, p.sent, p.lengths = p.in[:0], p.sent[:0], p.lengths[:0]
	for i := range out {
		p.carryOut(now, &out[i])
	}
	for _, look := range p.looks {
		look(p.c.Engine)
	}
	clear(p.looks)
	p.looks = p.looks[:0]
	if len(p.drained) > 0 && p.c.Engine.Pending() == 0 {
		for _, c := range p.drained {
			close(c)
		}
		p.drained = nil
	}
}

func (p *Plane) carryOut(now serving.Time, d *engine.Decision) {
	switch d.Kind {
	case engine.StartBatch:
		p.run(now, d)
	case engine.EndQuery:
		p.answer(now, d)
	case engine.LaunchInstance:
		p.launch(d)
	case engine.StopInstance:
		if i := p.instances[d.Instance]; i != nil {
			delete(p.instances, d.Instance)
			i.stop()
			if d.Reason == engine.Ejected {
				p.c.Trouble(fmt.Errorf("instance %d of worker %q gets no queries for a while: others served what it "+
					"failed on", d.Instance, p.spec().Workers[i.worker].Name))
			}
		}
	case engine.LoadVariant:
		p.instances[d.Instance].control(operation{load: true, variant: d.Variant, limit: int(d.Items)})
	case engine.UnloadVariant:
		p.instances[d.Instance].control(operation{variant: d.Variant})
	case engine.RequestPlan:
		p.plan(d)
	case engine.LimitBatch:
		s := p.spec()
		p.c.Trouble(fmt.Errorf("device type %q lacked memory for a batch of variant %q: from now on its batches "+
			"there have %d items at most, until the next start; `sluice profile` measures what fits, max_batch of "+
			"the variant sets it",
			s.DeviceTypes[d.DeviceType].Name, s.Variants[d.Variant].Name, d.Items))
	case engine.DoubtConfidence:
		name, then := p.spec().Variants[d.Variant].Name, "all of its answers are final from now on"
		if d.Reason == engine.InputsAsMeasured {
			then = "unsure answers may be improved again"
		}
		p.c.Trouble(fmt.Errorf("confidence of variant %q: %s: %s; `sluice profile --samples` measures it", name,
			d.Reason, then))
	case engine.KeepPlan:
		if d.Reason == engine.PlanInvalid {
			p.c.Trouble(fmt.Errorf("plan %d: %s: %s", d.Failure.Seq, d.Reason, d.Failure.Err))
		}
	}
}

// answer replies to the client of a query that has ended.
func (p *Plane) answer(now serving.Time, d *engine.Decision) {
	c := p.calls[d.Query]
	delete(p.calls, d.Query)
	if p.c.Outcome != nil {
		p.c.Outcome(d.Ended(now))
	}
	if c == nil {
		return
	}
	if c.request.Ends {
		p.endStream(c.request, d.Query)
	}
	if d.Outcome == serving.Served {
		outputs := c.outputs
		if c.execution != nil {
			outputs = only(c.execution.answer(), c.request.Outputs)
		}
		r := &Response{
			Query: d.Query, Outputs: outputs, Variant: d.Variant, Accuracy: d.Accuracy, Queue: d.Queue,
			Total: now.Sub(c.arrived), BatchSize: int(d.Items), Late: d.Late, Calibrated: d.Calibrated,
			Confidence: d.Confidence,
		}
		if c.request.Timings {
			r.Stages = timings(p.spec(), d, c.arrived, now)
		}
		c.reply(r, nil)
		return
	}
	e := &Error{
		Query: d.Query, Outcome: d.Outcome, Reason: d.Why(), Expired: d.Reason == engine.QueueTimeout,
		Full: d.Reason == engine.QueueFull, Closed: d.Reason == engine.AppClosed || c.gone,
		Unplaced: d.Reason.Unplaced(),
	}
	if d.Outcome == serving.Failed {
		e.Cause = c.cause
	}
	if d.Retry {
		if e.RetryAfter = d.RetryAfter; e.RetryAfter <= 0 {
			e.RetryAfter = unknownRetry
		}
	}
	c.reply(nil, e)
}

// unknownRetry is when to try again where the engine does not know when a place is expected.
const unknownRetry = time.Second

// plan has the planner answer a request, on a goroutine of its own. The engine decides whether the plan is valid.
func (p *Plane) plan(d *engine.Decision) {
	r := *d.Request
	seq := r.Snapshot.Seq
	if p.c.Planner == nil {
		p.planFailed(seq, errors.New("there is no planner"))
		return
	}
	p.helpers.Add(1)
	go func() {
		defer p.helpers.Done()
		ctx, cancel := context.WithTimeout(p.ctx, p.c.PlanTimeout)
		defer cancel()
		if made, err := MakePlan(ctx, p.c.Planner, r); err != nil {
			p.planFailed(seq, err)
		} else {
			p.send(message{in: engine.NewPlanReady(made)})
		}
	}()
}

// planFailed reports that a request has led to no plan.
func (p *Plane) planFailed(seq uint64, err error) {
	if p.ctx.Err() == nil {
		p.c.Trouble(fmt.Errorf("plan %d: %w", seq, err))
	}
	p.send(message{in: engine.NewPlanFailed(seq, err)})
}

// shutDown refuses the queries that have not ended and releases every instance.
func (p *Plane) shutDown() {
	p.mu.Lock()
	p.closed = true
	late := p.inbox
	p.inbox = nil
	p.mu.Unlock()
	refused := &Error{Outcome: serving.Refused, Reason: "the server is shutting down", RetryAfter: time.Second}
	for _, m := range late {
		if m.call != nil {
			m.call.reply(nil, refused)
		}
		// Functions of Inspect and Drain are not run: their callers wait for done as well.
	}
	for _, c := range p.calls {
		c.reply(nil, refused)
	}
	for _, i := range p.instances {
		i.stop()
	}
	p.helpers.Wait()
	p.states.close()
}
