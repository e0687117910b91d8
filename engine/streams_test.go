package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// Streams that are opened and closed, and queries that wait for their turn, allocate nothing in the steady state.
func TestStreamsDoNotAllocate(t *testing.T) {
	// some queries wait for each other all the time, or each stream is forgotten between two of its queries
	for _, streams := range []uint64{10, 1000} {
		c := simtest.Uniform(8, 2*time.Millisecond, time.Millisecond, 100*time.Millisecond, 16)
		c.Spec.Stages[0].Stateful = true
		d := newDriver(t, c, "shortestqueue", "greedy")
		d.streams = streams
		waited := 0
		for range 20_000 {
			d.arrive(300_000, 100*time.Millisecond)
			waited = max(waited, d.e.Fleet().AwaitingTurn(0).Len())
		}
		if streams == 10 && waited == 0 {
			t.Error("nobody has waited for a turn")
		}
		if n := testing.AllocsPerRun(2000, func() { d.arrive(300_000, 100*time.Millisecond) }); n != 0 {
			t.Errorf("%d streams: %v allocations for a query", streams, n)
		}
		if err := d.e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A stream belongs to its app: streams of two apps with the same number do not wait for each other.
func TestStreamsOfAppsDoNotMix(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
	c.Spec.Stages[0].Stateful = true
	spec, a, v := c.Spec.WithApp(c.Spec.Apps[0], c.Spec.Variants[0], nil)
	spec.Stages[spec.Source(a)].Stateful = true
	e, err := systems.System{Router: "shortestqueue", Batcher: "greedy"}.Engine(spec, latencies{{1, 1}, {1, 1}},
		c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	p := *c.Plan
	other := p.Instances[0]
	other.Place++ // beside the first
	other.Stage, other.Variants = spec.Source(a), append(other.Variants[:0:0], other.Variants...)
	other.Variants[0].Variant = v
	p.Instances = append(p.Instances[:1:1], other)
	for k := range p.Instances {
		p.Instances[k].TimeShared = false // so that both run at once
	}
	if err := p.Validate(spec); err != nil {
		t.Fatal(err)
	}
	e.Step(0, []engine.Input{{Kind: engine.PlanReady, Plan: &p}})
	e.Step(1, []engine.Input{
		{Kind: engine.InstanceChanged, Instance: 1}, {Kind: engine.InstanceChanged, Instance: 2, Variant: v},
	})
	var in []engine.Input
	for id, app := range []serving.AppID{0, 0, a} {
		in = append(in, engine.Input{
			Kind: engine.QueryArrived, Query: serving.Query{
				ID: serving.QueryID(id + 1), App: app, Arrived: 2, Deadline: 1e9, Items: 1, Variant: serving.None,
				Stream: 5,
			},
		})
	}
	var began []serving.QueryID
	for _, d := range e.Step(2, in) {
		for _, x := range d.Tasks {
			began = append(began, x.Query)
		}
	}
	if len(began) != 2 || began[0] != 1 || began[1] != 3 {
		t.Errorf("queries %v have begun, want the first of each app", began)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
