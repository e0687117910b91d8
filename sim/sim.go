// Package sim drives the engine on a virtual clock with a heap of future events. It contains no scheduling rule: with
// the same inputs, the engine decides here as in dataplane.
package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Config is a run. Together with the seeds in its parts it determines every byte of the result.
type Config struct {
	Spec   *serving.Spec
	Engine *engine.Engine // fresh
	Truth  truth.Model
	Source workload.Source
	// Initial is the plan in force from the start; nil for none. Recalled is what was learned of apps in an earlier
	// run.
	Initial  *plan.Plan
	Recalled []engine.Recalled
	// Content is the content of the queries; nil for the fan-outs of their apps (truth.Even).
	Content truth.Content
	// Warm skips the loading of the initial plan's instances: they are ready at time 0.
	Warm bool
	// Planner answers RequestPlan after PlanDelay; nil when the composition never asks for a plan.
	Planner   plan.Planner
	PlanDelay time.Duration
	// Faults happen at their times, in the order of At.
	Faults []Fault
	// Cancels are cancelled queries, in the order of At.
	Cancels []Cancel
	// Prices change at their times, in the order of At.
	Prices []PriceChange
	// Clients declare the rates of their streams, which are opened when a client joins and closed when it leaves.
	Clients []workload.Client
	// Growths replace the spec by larger ones at their times, in the order of At. Queries of new apps come later.
	Growths []Growth
	// Trouble says how a worker behaves at a time; nil for well. Pauses are times in which the engine is not called:
	// what happens meanwhile reaches it at their ends. They are in the order of At, and do not overlap.
	Trouble func(now serving.Time, w serving.WorkerID) Trouble
	Pauses  []Pause
	// Takeovers are dispatchers that die, in the order of At. They and the pauses do not overlap.
	Takeovers []Takeover
	// Supply says how machines are had; nil where all are there.
	Supply *Supply
	// LoadLimit is how long a load may take until its instance counts as lost; 0 for ever.
	LoadLimit time.Duration
	// Breaks reports whether a batch fails; nil for none.
	Breaks func(serving.BatchID) bool
	// Recorder gets the outcomes; nil for none.
	Recorder *report.Recorder
	// Outside is by how much later than the engine ends a served query its client has the answer, at or after the
	// query's arrival here. It does not keep machines busy.
	Outside time.Duration
	// Observe is called after every step; nil for none. The slices must not be kept.
	Observe func(now serving.Time, in []engine.Input, out []engine.Decision)
	// Check verifies the engine's invariants after every step: slow, for tests.
	Check bool
	// Limit is the latest end of the run; 0 means when everything has ended.
	Limit serving.Time
}

// Fault is the loss of a worker: every instance on it is lost at At. An instance launched there before Until is lost at
// the end of its load. Until 0 is a worker that is back at once.
type Fault struct {
	At     serving.Time
	Worker serving.WorkerID
	Until  serving.Time
	// Notice is how long before At the engine is told that the machine will go; 0 for not at all. At At it is told that
	// another can be had.
	Notice time.Duration
}

// Cancel is a client that stops waiting for its query.
type Cancel struct {
	At    serving.Time
	Query serving.QueryID // queries are numbered from 1 in order of arrival
}

// PriceChange is a new price of a device type, in $/h, from At on.
type PriceChange struct {
	At         serving.Time
	DeviceType serving.DeviceTypeID
	Price      float64
}

// Growth is a larger world from At on.
type Growth struct {
	At     serving.Time
	Growth *engine.Growth
}

// Result holds the numbers of a run that are not in its report.
type Result struct {
	End     serving.Time // of the last step
	Steps   int64
	Batches int64
	Queries int64
	Usage   report.Usage // until End
	// PlanFailures are the requests that led to no plan, by reason, in order of first occurrence; nil for none.
	PlanFailures []report.PlanFailure
	// Held is by DeviceTypeID how long machines were held, from being asked for to being given back, of types that are
	// supplied; nil without Config.Supply.
	Held []time.Duration
}

// Run simulates until the source is exhausted and every query has ended. It returns an error when queries are left that
// nothing will ever end, when a planner is missing, or when an invariant is broken. A planner that fails does not end
// the run: see Result.PlanFailures. It consumes what c points to.
func Run(c Config) (Result, error) {
	if c.Content == nil && truth.Fractional(c.Spec) {
		c.Content = truth.NewEven(c.Spec)
	}
	s := &simulation{
		Config: c, loading: make(map[serving.InstanceID]serving.Time), frames: make(map[serving.QueryID]truth.Frame),
		back: make([]serving.Time, len(c.Spec.Workers)), streams: streamChanges(c.Clients),
		lengths: make(map[serving.QueryID]int32), machines: newMachines(c.Truth), notices: noticesOf(c.Faults),
	}
	if c.Engine.SecondAnswers() {
		s.numbers, s.came = make(map[serving.QueryID]uint64), make(map[serving.AppID]uint64)
	}
	err := s.run()
	return s.result, err
}

// simulation is a run. The lists of its Config hold the events that have not happened yet.
type simulation struct {
	Config
	events  heap
	in      []engine.Input
	next    workload.Arrival
	more    bool // next is one
	queries serving.QueryID
	streams []streamChange
	back    []serving.Time                      // by worker: when it is up again after a fault
	loading map[serving.InstanceID]serving.Time // when the last load that was ordered of an instance ends
	frames  map[serving.QueryID]truth.Frame
	lengths map[serving.QueryID]int32 // of the queries that have not ended, where machines take longer for long ones
	// numbers are which of their apps' queries these are, of which so many came, where confidences are read.
	numbers  map[serving.QueryID]uint64
	came     map[serving.AppID]uint64
	machines *machines
	notices  []notice        // that are not given yet
	had      []held          // by worker, where machines are supplied
	heldOf   []time.Duration // by device type: Result.Held so far
	// With takeovers: the queries that have not ended, and those that ended with their dispatcher.
	open, failed map[serving.QueryID]bool
	moved        bool // what was due at this instant included the former end of a batch
	result       Result
}

func (s *simulation) run() error {
	if err := s.begin(); err != nil {
		return err
	}
	for s.more || s.Engine.Pending() > 0 {
		now := s.nextEvent()
		if now == serving.Never {
			return fmt.Errorf("sim: %d queries wait at %v and nothing will ever end them: is an instance with a "+
				"variant that may serve them in the plan?", s.Engine.Pending(), s.result.End)
		}
		if s.Limit > 0 && now > s.Limit {
			break
		}
		s.gather(now)
		if s.moved && len(s.in) == 0 && now < s.Engine.NextWake() {
			continue // only the end of a batch was due, and it has been moved
		}
		if err := s.step(now, false); err != nil {
			return err
		}
	}
	s.result.Queries = int64(s.queries)
	s.result.Usage = s.Engine.Usage(s.result.End)
	s.result.Held = s.heldUntil(s.result.End)
	return nil
}

// begin puts the initial plan into force.
func (s *simulation) begin() error {
	s.beginTakeovers()
	for k := range s.Recalled {
		s.in = append(s.in, engine.NewIdleRecalled(&s.Recalled[k]))
	}
	if s.Initial != nil {
		s.in = append(s.in, engine.NewPlanReady(s.Initial))
	}
	if len(s.in) > 0 {
		engine.Sort(s.in)
		if err := s.step(0, s.Warm); err != nil {
			return err
		}
	}
	s.next, s.more = s.Source.Next()
	return nil
}

// nextEvent returns when anything happens next, the engine's wake-up included.
func (s *simulation) nextEvent() serving.Time {
	now := min(s.events.next(), s.Engine.NextWake())
	if s.more {
		now = min(now, s.next.At)
	}
	if len(s.Faults) > 0 {
		now = min(now, s.Faults[0].At)
	}
	if len(s.notices) > 0 {
		now = min(now, s.notices[0].at)
	}
	if len(s.Takeovers) > 0 {
		now = min(now, s.Takeovers[0].At)
	}
	if len(s.Cancels) > 0 {
		now = min(now, s.Cancels[0].At)
	}
	if len(s.Prices) > 0 {
		now = min(now, s.Prices[0].At)
	}
	if len(s.Growths) > 0 {
		now = min(now, s.Growths[0].At)
	}
	if len(s.streams) > 0 {
		now = min(now, s.streams[0].at)
	}
	return s.afterPause(now)
}

// gather collects what happens at an instant, in the engine's order.
func (s *simulation) gather(now serving.Time) {
	s.moved = false
	for at := s.events.next(); at <= now; at = s.events.next() {
		s.in = s.events.pop(s.in)
		last := len(s.in) - 1
		x := &s.in[last]
		if engine.Stale(s.Engine, x) {
			s.in = s.in[:last]
		} else if x.Kind == engine.BatchDone && !s.machines.end(x.Batch, at) {
			s.in, s.moved = s.in[:last], true
		} else if i := s.Engine.Fleet().Instance(x.Instance); i != nil && x.Change == engine.Lost &&
			x.Kind == engine.InstanceChanged {
			s.machines.lose(i)
		}
	}
	s.die(now)
	s.announce(now)
	for ; len(s.Faults) > 0 && s.Faults[0].At <= now; s.Faults = s.Faults[1:] {
		s.strike(&s.Faults[0])
	}
	for ; len(s.Growths) > 0 && s.Growths[0].At <= now; s.Growths = s.Growths[1:] {
		s.Spec = s.Growths[0].Growth.Spec
		s.in = append(s.in, engine.NewSpecGrown(s.Growths[0].Growth))
	}
	for ; len(s.streams) > 0 && s.streams[0].at <= now; s.streams = s.streams[1:] {
		s.in = append(s.in, s.streams[0].in)
	}
	for s.more && s.next.At <= now {
		s.arrive()
	}
	for ; len(s.Cancels) > 0 && s.Cancels[0].At <= now; s.Cancels = s.Cancels[1:] {
		s.in = append(s.in, engine.NewQueryCancelled(s.Cancels[0].Query))
	}
	for ; len(s.Prices) > 0 && s.Prices[0].At <= now; s.Prices = s.Prices[1:] {
		s.in = append(s.in, engine.NewPriceChanged(s.Prices[0].DeviceType, s.Prices[0].Price))
	}
	engine.Sort(s.in)
}

// arrive takes the next query from the source.
func (s *simulation) arrive() {
	a := &s.next
	s.queries++
	q := serving.Query{
		ID: s.queries, App: a.App, Arrived: a.At, Items: max(a.Items, 1), Length: a.Length, Priority: a.Priority,
		MinAccuracy: a.MinAccuracy, Variant: a.Variant, Stream: a.Stream, Tenant: a.Tenant,
	}
	s.Spec.SetDeadline(&q, a.Timeout)
	if apps := s.Spec.Apps; s.Outside > 0 && a.App >= 0 && int(a.App) < len(apps) && apps[a.App].Slack == 0 {
		q.Slack = s.Outside // as the data plane keeps free what it takes itself
	}
	if s.Content != nil {
		shown := q // q itself would be on the heap, with content or without
		s.frames[q.ID] = s.Content.Frame(&shown)
	}
	if s.machines.long != nil && q.Length > 0 {
		s.lengths[q.ID] = q.Length
	}
	if s.open != nil {
		s.open[q.ID] = true
	}
	if s.numbers != nil {
		s.came[q.App]++
		s.numbers[q.ID] = s.came[q.App]
	}
	s.in = append(s.in, engine.NewQueryArrived(q))
	s.next, s.more = s.Source.Next()
}

// strike turns a fault into the loss of the instances on its worker.
func (s *simulation) strike(f *Fault) {
	if f.Worker >= 0 && int(f.Worker) < len(s.back) {
		s.back[f.Worker] = max(s.back[f.Worker], f.Until)
	}
	s.loseMachine(f.Worker, f.At)
	if f.Notice > 0 {
		s.in = append(s.in, engine.NewMachineChanged(f.Worker, engine.MachineStays, 0))
	}
	for _, i := range s.Engine.Fleet().Live() {
		if i.Worker() == f.Worker {
			s.machines.lose(i)
			s.in = append(s.in, engine.NewInstanceLost(i.ID()))
		}
	}
}

// step steps the engine with the inputs gathered and carries out its decisions. warm skips loads.
func (s *simulation) step(now serving.Time, warm bool) error {
	out := s.Engine.Step(now, s.in)
	s.result.End = now
	s.result.Steps++
	if s.Observe != nil {
		s.Observe(now, s.in, out)
	}
	s.in = s.in[:0]
	for i := range out {
		if err := s.carryOut(now, &out[i], warm); err != nil {
			return err
		}
	}
	s.machines.schedule(now, s.batchEnds)
	if s.Check {
		if err := s.Engine.Check(); err != nil {
			return fmt.Errorf("sim: at %v: %w", now, err)
		}
	}
	return nil
}

// carryOut turns a decision into what will happen because of it.
func (s *simulation) carryOut(now serving.Time, d *engine.Decision, warm bool) error {
	switch d.Kind {
	case engine.StartBatch:
		s.runBatch(now, d)
	case engine.EndQuery:
		if s.Content != nil {
			delete(s.frames, d.Query)
		}
		delete(s.open, d.Query)
		delete(s.lengths, d.Query)
		delete(s.numbers, d.Query)
		if s.Recorder != nil {
			o := d.Ended(now)
			if s.failed[d.Query] {
				o.Outcome = serving.Failed
			}
			if o.Outcome == serving.Served {
				o.Inside = o.Done.Sub(o.Arrived)
				o.Done = o.Done.Add(s.Outside)
			}
			s.Recorder.Add(&o)
		}
	case engine.LaunchInstance:
		s.launch(now, d, warm)
	case engine.StopInstance:
		delete(s.loading, d.Instance)
		s.left(now)
	case engine.LoadVariant:
		i := s.Engine.Fleet().Instance(d.Instance)
		if s.LoadLimit > 0 && s.troubleOf(now, i.Worker()).LoadHangs {
			s.happens(max(now, s.loading[d.Instance]).Add(s.LoadLimit), engine.NewLoadFailed(d.Instance, d.Variant))
			break
		}
		// after the loads that are under way there
		at := max(now, s.loading[d.Instance]).Add(s.Truth.Load(d.Variant, i.DeviceType()))
		s.loading[d.Instance] = at
		s.happens(at, engine.NewVariantReady(d.Instance, d.Variant))
	case engine.RequestPlan:
		return s.plan(now, d)
	case engine.KeepPlan:
		s.result.PlanFailures = report.AddPlanFailure(s.result.PlanFailures, d.Reason.String(), now, d.Failure.Err)
	}
	return nil
}

// happens schedules an input.
func (s *simulation) happens(at serving.Time, in engine.Input) { s.events.push(at, &in) }

// runBatch has a batch begin.
func (s *simulation) runBatch(now serving.Time, d *engine.Decision) {
	f := s.Engine.Fleet()
	i := f.Instance(d.Instance)
	r := s.machines.start(now, i, f.Concurrency(i), d)
	if s.machines.long != nil && s.knowsLengths(d) {
		for k := range d.Tasks {
			x := &d.Tasks[k]
			r.runs = append(r.runs, serving.Run{Items: int(x.Items), Length: s.lengthAt(x.Query, d.Stage)})
		}
		r.runs = s.Spec.Variants[d.Variant].Runs(r.runs)
	}
	r.balloon, r.sent, r.lengths = s.contents(d)
	r.sure = s.confidences(d)
	r.breaks = s.Breaks != nil && s.Breaks(d.Batch)
	s.trouble(now, i, r, d)
	s.result.Batches++
}

// batchEnds schedules the end of a batch. An end that was scheduled before is left on the heap: gather passes it over.
func (s *simulation) batchEnds(r *run) {
	if r.hangs {
		return // its instance is lost before
	}
	took := r.ends.Sub(r.began)
	if s.machines.long != nil {
		took = max(took-s.machines.long.Around(r.device), 0)
	}
	if r.breaks {
		s.happens(r.ends, engine.NewBatchBroken(r.batch, r.instance, took))
		return
	}
	done := engine.NewBatchDone(r.batch, r.instance, took, r.sent)
	done.Confidence, done.Lengths = r.sure, r.lengths
	s.happens(r.ends, done)
}

// launch schedules the loads of an instance. They follow each other, as on a worker with one disk and one bus. On a
// worker that is down the instance is lost at the end of the first load.
func (s *simulation) launch(now serving.Time, d *engine.Decision, warm bool) {
	l := d.Launch
	at, ok := s.machineReady(now, d, warm)
	if !ok {
		return
	}
	if w := l.Key.Worker; int(w) < len(s.back) && s.back[w] > now {
		s.happens(at.Add(s.Truth.Load(l.Variants[0], l.DeviceType)), engine.NewInstanceLost(d.Instance))
		return
	}
	if !warm && s.LoadLimit > 0 && s.troubleOf(now, l.Key.Worker).LoadHangs {
		s.happens(now.Add(s.LoadLimit), engine.NewInstanceLost(d.Instance))
		return
	}
	for _, v := range l.Variants {
		if !warm {
			at = at.Add(s.Truth.Load(v, l.DeviceType))
		}
		s.happens(at, engine.NewVariantReady(d.Instance, v))
	}
	s.loading[d.Instance] = at
}

// plan lets the planner answer a request after its delay.
func (s *simulation) plan(now serving.Time, d *engine.Decision) error {
	if s.Planner == nil {
		return fmt.Errorf("sim: the engine asked for a plan at %v and there is no planner", now)
	}
	at := now.Add(max(s.PlanDelay, 1))
	if p, err := s.Planner.Plan(context.Background(), *d.Request); err != nil {
		s.happens(at, engine.NewPlanFailed(d.Request.Snapshot.Seq, err))
	} else {
		s.happens(at, engine.NewPlanReady(p))
	}
	return nil
}
