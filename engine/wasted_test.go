package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// Two stages, a batch of n takes 10n ms. Machine time counts as wasted when its query misses: what it took before, and
// what still runs. A query's part of a batch is that of its items.
func TestWastedMachineTime(t *testing.T) {
	const ms = time.Millisecond
	c := simtest.Staged([]serving.Stage{
		{Name: "a", Next: []serving.Edge{{To: 1, FanOut: 1}}}, {Name: "b"},
	}, 1, 0, 10*ms, time.Hour, 8)
	e, err := systems.System{Router: "fcfs", Batcher: "earlydrop"}.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	now, started := serving.Time(0), []engine.Decision(nil)
	step := func(at time.Duration, in ...engine.Input) {
		now = serving.Time(at)
		started = nil
		for _, x := range e.Step(now, in) {
			switch x.Kind {
			case engine.LaunchInstance:
				e.Step(now, []engine.Input{engine.NewVariantReady(x.Instance, x.Launch.Variants[0])})
			case engine.StartBatch:
				started = append(started, x)
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	wasted := func(why string, want time.Duration) {
		t.Helper()
		if got := e.Usage(now).Wasted; got != want {
			t.Errorf("%s: %v wasted, want %v", why, got, want)
		}
	}
	id := serving.QueryID(0)
	arrive := func(items int32, due time.Duration) engine.Input {
		id++
		return engine.NewQueryArrived(serving.Query{
			ID: id, Arrived: now, Deadline: serving.Time(due), Items: items, Variant: serving.None,
		})
	}
	done := func(x engine.Decision, took time.Duration) engine.Input {
		return engine.NewBatchDone(x.Batch, x.Instance, took, nil)
	}
	step(0, engine.NewPlanReady(c.Plan))
	// One item due in 40 ms and three due in an hour share a batch of 40 ms.
	step(0, arrive(1, 50*ms), arrive(3, time.Hour))
	if len(started) != 1 || started[0].Items != 4 {
		t.Fatalf("started %+v, want one batch of four", started)
	}
	step(45*ms, done(started[0], 44*ms))
	wasted("the first cannot end its second stage", 11*ms)
	// The three run on, 30 ms, and are in time.
	for len(started) > 0 {
		step(now.Sub(0)+30*ms, done(started[0], 30*ms))
	}
	wasted("the three are in time", 11*ms)
	// One query is cancelled while it runs: its client's doing.
	step(time.Second, arrive(1, time.Minute))
	run := started[0]
	step(time.Second+5*ms, engine.NewQueryCancelled(id))
	step(time.Second+10*ms, done(run, 10*ms))
	wasted("a query was cancelled", 11*ms)
	// One is late at the end of its last stage: both of its batches count.
	step(2*time.Second, arrive(1, 2*time.Second+25*ms))
	step(2*time.Second+10*ms, done(started[0], 10*ms))
	step(2*time.Second+31*ms, done(started[0], 21*ms))
	wasted("one was late", 42*ms)
}
