// Package sim drives the engine on a virtual clock over an event heap. It contains no scheduling rule: what the engine
// decides here is what it decides in dataplane, given the same inputs.
package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Config is a run: together with the seeds inside its parts it determines every byte of the result.
type Config struct {
	Spec   *serving.Spec
	Engine *engine.Engine // fresh
	Truth  truth.Model
	Source workload.Source
	// Initial is in force from the start, with what was learned of apps in an earlier run.
	Initial  *plan.Plan
	Recalled []engine.Recalled
	// Content is what is in the queries; nil for what their apps' fan-outs say.
	Content truth.Content
	// Warm skips the loading of the initial plan's instances: they are ready at time 0.
	Warm bool
	// Planner answers RequestPlan after PlanDelay; nil when the composition never asks.
	Planner   plan.Planner
	PlanDelay time.Duration
	// Faults happen at their times, in the order of At.
	Faults []Fault
	// Cancels are clients that go away, in the order of At.
	Cancels []Cancel
	// Prices change at their times, in the order of At.
	Prices []PriceChange
	// Clients are clients of apps' sessions: their streams are opened and closed when they join and leave.
	Clients []workload.Client
	// Growths make the world larger at their times, in the order of At. Queries of new apps come after them.
	Growths []Growth
	// Breaks tells whether a batch fails; nil for none.
	Breaks func(serving.BatchID) bool
	// Recorder takes the outcomes; nil for none.
	Recorder *report.Recorder
	// Observe sees every step; nil for none. The slices must not be kept.
	Observe func(now serving.Time, in []engine.Input, out []engine.Decision)
	// Check verifies the engine's invariants after every step: slow, for tests.
	Check bool
	// Limit ends the run at this time at the latest; 0 means when everything has ended.
	Limit serving.Time
}

// Fault is the loss of a worker: every instance on it is lost at At, and what is launched there before Until is lost as
// well, at the end of its load. Until 0 is a worker that comes back at once.
type Fault struct {
	At     serving.Time
	Worker serving.WorkerID
	Until  serving.Time
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

// Result is what a run adds to its report.
type Result struct {
	End     serving.Time
	Steps   int64
	Batches int64
	Queries int64
	Usage   report.Usage
}

// Run simulates until the source is exhausted and every query has ended. It fails when queries are left that nothing
// will ever end, when a planner is missing, or when an invariant is broken.
func Run(c Config) (Result, error) {
	s := &simulation{
		Config: c, loading: make(map[serving.InstanceID]serving.Time), frames: make(map[serving.QueryID]truth.Frame),
	}
	return s.run()
}

type simulation struct {
	Config
	events  heap
	in      []engine.Input
	next    workload.Arrival
	more    bool
	queries serving.QueryID
	faults  int
	back    []serving.Time                      // by worker: when it is up again after a fault
	loading map[serving.InstanceID]serving.Time // when the last load that was ordered of an instance ends
	cancels int
	prices  int
	growths int
	streams []streamChange
	frames  map[serving.QueryID]truth.Frame
	result  Result
}

func (s *simulation) run() (Result, error) {
	for k := range s.Recalled {
		s.in = append(s.in, engine.Input{Kind: engine.IdleRecalled, Recalled: &s.Recalled[k]})
	}
	if s.Initial != nil {
		s.in = append(s.in, engine.Input{Kind: engine.PlanReady, Plan: s.Initial})
	}
	if len(s.in) > 0 {
		engine.Sort(s.in)
		if err := s.step(0, s.Warm); err != nil {
			return s.result, err
		}
	}
	s.streams = streamChanges(s.Clients)
	s.back = make([]serving.Time, len(s.Spec.Workers))
	s.next, s.more = s.Source.Next()
	for {
		now := min(s.events.next(), s.Engine.NextWake())
		if s.more {
			now = min(now, s.next.At)
		} else if s.Engine.Pending() == 0 {
			break
		}
		if s.faults < len(s.Faults) {
			now = min(now, s.Faults[s.faults].At)
		}
		if s.cancels < len(s.Cancels) {
			now = min(now, s.Cancels[s.cancels].At)
		}
		if s.prices < len(s.Prices) {
			now = min(now, s.Prices[s.prices].At)
		}
		if s.growths < len(s.Growths) {
			now = min(now, s.Growths[s.growths].At)
		}
		if len(s.streams) > 0 {
			now = min(now, s.streams[0].at)
		}
		if now == serving.Never {
			return s.result,
				fmt.Errorf("sim: %d queries wait at %v and nothing will ever end them: is an instance with a variant "+
					"that may serve them in the plan?", s.Engine.Pending(), s.result.End)
		}
		if s.Limit > 0 && now > s.Limit {
			break
		}
		for s.events.next() == now {
			s.in = s.events.pop(s.in)
			if last := len(s.in) - 1; engine.Stale(s.Engine, &s.in[last]) {
				s.in = s.in[:last]
			}
		}
		s.strike(now)
		for ; s.growths < len(s.Growths) && s.Growths[s.growths].At <= now; s.growths++ {
			g := s.Growths[s.growths].Growth
			s.Spec = g.Spec
			s.in = append(s.in, engine.Input{Kind: engine.SpecGrown, Growth: g})
		}
		for ; len(s.streams) > 0 && s.streams[0].at <= now; s.streams = s.streams[1:] {
			s.in = append(s.in, s.streams[0].in)
		}
		for s.more && s.next.At <= now {
			s.arrive()
		}
		for ; s.cancels < len(s.Cancels) && s.Cancels[s.cancels].At <= now; s.cancels++ {
			s.in = append(s.in, engine.Input{
				Kind: engine.QueryCancelled, Query: serving.Query{ID: s.Cancels[s.cancels].Query},
			})
		}
		for ; s.prices < len(s.Prices) && s.Prices[s.prices].At <= now; s.prices++ {
			p := &s.Prices[s.prices]
			s.in = append(s.in, engine.Input{Kind: engine.PriceChanged, DeviceType: p.DeviceType, Price: p.Price})
		}
		engine.Sort(s.in)
		if err := s.step(now, false); err != nil {
			return s.result, err
		}
	}
	s.result.Queries = int64(s.queries)
	s.result.Usage = s.Engine.Usage(s.result.End)
	return s.result, nil
}

func (s *simulation) arrive() {
	a := &s.next
	s.queries++
	q := serving.Query{
		ID: s.queries, App: a.App, Arrived: a.At, Items: max(a.Items, 1), Priority: a.Priority,
		MinAccuracy: a.MinAccuracy, Variant: a.Variant, Stream: a.Stream,
	}
	limit := a.Timeout
	if limit <= 0 && int(a.App) < len(s.Spec.Apps) && a.App >= 0 {
		limit = s.Spec.Apps[a.App].SLO.Latency
	}
	q.Deadline = a.At.Add(limit)
	if s.Content != nil {
		shown := q // q itself would be on the heap, with content or without
		s.frames[q.ID] = s.Content.Frame(&shown)
	}
	s.in = append(s.in, engine.Input{Kind: engine.QueryArrived, Query: q})
	s.next, s.more = s.Source.Next()
}

// strike turns faults that are due into the loss of the instances on their workers.
func (s *simulation) strike(now serving.Time) {
	for ; s.faults < len(s.Faults) && s.Faults[s.faults].At <= now; s.faults++ {
		if w := s.Faults[s.faults].Worker; w >= 0 && int(w) < len(s.back) {
			s.back[w] = max(s.back[w], s.Faults[s.faults].Until)
		}
		for _, i := range s.Engine.Fleet().Live() {
			if i.Key.Worker == s.Faults[s.faults].Worker {
				s.in = append(s.in, engine.Input{
					Kind: engine.InstanceChanged, Instance: i.ID, Change: engine.Lost, Variant: serving.None,
				})
			}
		}
	}
}

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
	if s.Check {
		if err := s.Engine.Check(); err != nil {
			return fmt.Errorf("sim: at %v: %w", now, err)
		}
	}
	return nil
}

func (s *simulation) carryOut(now serving.Time, d *engine.Decision, warm bool) error {
	switch d.Kind {
	case engine.StartBatch:
		i := s.Engine.Fleet().Instance(d.Instance)
		took := s.Truth.Service(d.Variant, i.DeviceType, int(d.Items), s.Engine.Fleet().AtOnce(i))
		took, sent := s.ran(d, took)
		in := engine.Input{Kind: engine.BatchDone, Batch: d.Batch, Instance: d.Instance, Took: took, Emitted: sent}
		if s.Breaks != nil && s.Breaks(d.Batch) {
			in.Result, in.Emitted = engine.Broken, nil
		}
		s.result.Batches++
		s.events.push(now.Add(took), &in)
	case engine.EndQuery:
		if s.Content != nil {
			delete(s.frames, d.Query)
		}
		if s.Recorder != nil {
			o := d.Ended(now)
			s.Recorder.Add(&o)
		}
	case engine.LaunchInstance:
		// Variants load one after the other, as a worker with one disk and one bus does.
		at := now
		if w := d.Launch.Key.Worker; int(w) < len(s.back) && s.back[w] > now {
			at = at.Add(s.Truth.Load(d.Launch.Variants[0], d.Launch.DeviceType))
			s.events.push(at, &engine.Input{
				Kind: engine.InstanceChanged, Instance: d.Instance, Change: engine.Lost, Variant: serving.None,
			})
			break
		}
		for _, v := range d.Launch.Variants {
			if !warm {
				at = at.Add(s.Truth.Load(v, d.Launch.DeviceType))
			}
			s.events.push(at, &engine.Input{
				Kind: engine.InstanceChanged, Instance: d.Instance, Change: engine.VariantReady, Variant: v,
			})
		}
		s.loading[d.Instance] = at
	case engine.StopInstance:
		delete(s.loading, d.Instance)
	case engine.LoadVariant:
		i := s.Engine.Fleet().Instance(d.Instance)
		// after what is being loaded there
		at := max(now, s.loading[d.Instance]).Add(s.Truth.Load(d.Variant, i.DeviceType))
		s.loading[d.Instance] = at
		s.events.push(at, &engine.Input{
			Kind: engine.InstanceChanged, Instance: d.Instance, Change: engine.VariantReady, Variant: d.Variant,
		})
	case engine.RequestPlan:
		return s.plan(now, d)
	}
	return nil
}

func (s *simulation) plan(now serving.Time, d *engine.Decision) error {
	if s.Planner == nil {
		return fmt.Errorf("sim: the engine asked for a plan at %v and there is no planner", now)
	}
	p, err := s.Planner.Plan(context.Background(), d.Asks())
	in := engine.Input{Kind: engine.PlanFailed, Seq: d.Snapshot.Seq}
	if err == nil {
		in = engine.Input{Kind: engine.PlanReady, Plan: p}
	}
	s.events.push(now.Add(max(s.PlanDelay, 1)), &in)
	return nil
}
