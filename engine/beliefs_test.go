package engine_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// bench is an engine of one instance whose batches take the time that takes returns.
type bench struct {
	*testing.T
	e     *engine.Engine
	now   serving.Time
	query serving.QueryID
	takes time.Duration
	asked []engine.Decision // requests for plans
	ended map[serving.Outcome]int
}

func newBench(t *testing.T, s systems.System, c *simtest.Cluster) *bench {
	e, err := s.Engine(c.Spec, nil, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, e: e, now: 1, ended: make(map[serving.Outcome]int)}
	b.step(engine.Input{Kind: engine.PlanReady, Plan: c.Plan})
	return b
}

func (b *bench) step(in ...engine.Input) {
	b.Helper()
	var next []engine.Input
	for _, d := range b.e.Step(b.now, in) {
		switch d.Kind {
		case engine.LaunchInstance:
			next = append(next, engine.Input{
				Kind: engine.InstanceChanged, Instance: d.Instance, Variant: d.Launch.Variants[0],
			})
		case engine.StartBatch:
			b.now = b.now.Add(b.takes)
			next = append(next, engine.Input{
				Kind: engine.BatchDone, Batch: d.Batch, Instance: d.Instance, Took: b.takes,
			})
		case engine.RequestPlan:
			b.asked = append(b.asked, d)
		case engine.EndQuery:
			b.ended[d.Outcome]++
		}
	}
	if err := b.e.Check(); err != nil {
		b.Fatal(err)
	}
	if len(next) > 0 {
		b.step(next...)
	}
}

// ask lets a query arrive and steps until its batch ends.
func (b *bench) ask(items int32, slo time.Duration) {
	b.Helper()
	b.query++
	b.now += 1e6
	b.step(engine.Input{
		Kind: engine.QueryArrived, Query: serving.Query{
			ID: b.query, Arrived: b.now, Deadline: b.now.Add(slo), Items: items, Variant: serving.None,
		},
	})
}

func learning() systems.System {
	s := systems.System{Name: "test", Router: "earliestfinish", Batcher: "single", Scaler: "mixshift"}
	s.Options.Learn = true
	return s
}

// After a time in which every batch takes too long, every query looks late. Some run all the same, so that the engine
// sees the end of that time.
func TestLateLookingQueriesAreProbed(t *testing.T) {
	const slo = 100 * time.Millisecond
	b := newBench(t, learning(), simtest.Uniform(1, time.Millisecond, time.Millisecond, slo, 8))
	serves := func(n int) int {
		before := b.ended[serving.Served]
		for range n {
			b.ask(1, slo)
		}
		return b.ended[serving.Served] - before
	}
	b.takes = 10 * time.Millisecond
	if n := serves(50); n != 50 {
		t.Fatalf("%d of 50 were served", n)
	}
	b.takes = 300 * time.Millisecond
	serves(50)
	if n := serves(640); n > 40 {
		t.Errorf("%d of 640 were run although the machine is too slow", n)
	}
	if l := b.e.Fleet().Latency(0, 0, 1, 1); l < 250*time.Millisecond {
		t.Errorf("the spell is believed to be of %v", l)
	}
	b.takes = 10 * time.Millisecond
	serves(32 * 20)
	if n := serves(100); n != 100 {
		t.Errorf("after the spell %d of 100 were served", n)
	}
}

// Broken batches change no belief.
func TestBrokenBatchesTeachNothing(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
	e, err := learning().Engine(c.Spec, nil, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	out := e.Step(1, []engine.Input{{Kind: engine.PlanReady, Plan: c.Plan}})
	e.Step(2, []engine.Input{{Kind: engine.InstanceChanged, Instance: out[0].Instance, Variant: 0}})
	before := e.Fleet().Latency(0, 0, 1, 1)
	for n := range serving.Time(50) {
		at := 10 + 10*n
		for _, d := range e.Step(at, []engine.Input{
			{
				Kind: engine.QueryArrived, Query: serving.Query{
					ID: serving.QueryID(n + 1), Arrived: at, Deadline: at + 1e9, Items: 1, Variant: serving.None,
				},
			},
		}) {
			if d.Kind == engine.StartBatch {
				e.Step(at+1, []engine.Input{
					{
						Kind: engine.BatchDone, Batch: d.Batch, Instance: d.Instance, Result: engine.Broken,
						Took: time.Minute,
					},
				})
			}
		}
	}
	if after := e.Fleet().Latency(0, 0, 1, 1); after != before {
		t.Errorf("%v was believed, %v after batches that broke", before, after)
	}
}

// Requests carry the sizes seen, the latencies learned and the present prices. A change of each leads to a request.
func TestRequestsCarryWhatWasSeen(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 64)
	c.Spec.DeviceTypes[0].PricePerHour = 0.5
	c.Spec.Apps[0].Mix = serving.Mix{Sizes: []int32{7}, Shares: []float64{1}}
	s := learning()
	s.Options.Replan = time.Millisecond
	b := newBench(t, s, c)
	b.takes = 10 * time.Millisecond
	for range 6 {
		b.ask(4, time.Second)
	}
	if len(b.asked) != 1 {
		t.Fatalf("%d requests after latency was learned, want 1", len(b.asked))
	}
	r := b.asked[0].Request
	if r.Beliefs == nil || r.Beliefs.Latency(0, 0, 4, 1) != 10*time.Millisecond || r.Mix(0).Largest() != 7 ||
		r.Price(0) != 0.5 || r.Snapshot == nil {
		t.Errorf("the first request says %+v", r)
	}
	answer := func() {
		p := *c.Plan
		p.Snapshot = b.asked[len(b.asked)-1].Request.Snapshot.Seq
		b.now += 1e9
		b.step(engine.Input{Kind: engine.PlanReady, Plan: &p})
	}
	answer()
	for range 200 {
		b.ask(4, time.Second)
	}
	b.step(engine.Input{Kind: engine.PriceChanged, Price: 0.5})
	if len(b.asked) != 1 {
		t.Errorf("the same price again: %d requests", len(b.asked))
	}
	b.step(engine.Input{Kind: engine.PriceChanged, Price: 0.2})
	if len(b.asked) != 2 {
		t.Fatalf("%d requests after a price changed, want 2", len(b.asked))
	}
	if r := b.asked[1].Request; r.Price(0) != 0.2 || r.Mix(0).Largest() != 4 || r.Mix(0).Count != 206 {
		t.Errorf("the second request says %+v, the mix %+v", r, r.Mix(0))
	}
	answer()
	b.takes = 25 * time.Millisecond
	for range 20 {
		b.ask(4, time.Second)
	}
	if len(b.asked) != 3 {
		t.Fatalf("%d requests after the machine slowed down, want 3", len(b.asked))
	}
	if l := b.asked[2].Request.Beliefs.Latency(0, 0, 4, 1); l != 25*time.Millisecond {
		t.Errorf("the third request says 4 items take %v", l)
	}
	if l := b.asked[1].Request.Beliefs.Latency(0, 0, 4, 1); l != 10*time.Millisecond {
		t.Errorf("what the second request said has changed to %v", l)
	}
	for _, x := range []engine.Input{
		{DeviceType: 1, Price: 1}, {DeviceType: -1, Price: 1}, {Price: -1}, {Price: math.NaN()}, {Price: math.Inf(1)},
	} {
		x.Kind = engine.PriceChanged
		b.e.Step(b.now, []engine.Input{x})
		if b.e.Price(0) != 0.2 || b.e.Check() == nil {
			t.Errorf("%v $/h for type %d was taken", x.Price, x.DeviceType)
		}
	}
}

// Prices come after instance changes and before plans.
func TestPricesInOrder(t *testing.T) {
	p := simtest.Uniform(1, 1, 1, 1e6, 1).Plan
	in := []engine.Input{
		{Kind: engine.QueryArrived}, {Kind: engine.PlanReady, Plan: p}, {Kind: engine.PriceChanged, DeviceType: 1},
		{Kind: engine.PriceChanged}, {Kind: engine.InstanceChanged}, {Kind: engine.BatchDone},
	}
	engine.Sort(in)
	var got []engine.InputKind
	for _, x := range in {
		got = append(got, x.Kind)
	}
	if !slices.Equal(got, []engine.InputKind{
		engine.BatchDone, engine.InstanceChanged, engine.PriceChanged, engine.PriceChanged, engine.PlanReady,
		engine.QueryArrived,
	}) || in[2].DeviceType != 0 {
		t.Errorf("%v", got)
	}
}
