package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// followed returns an engine whose scaler follows the content of an app of two stages, with a plan for the given
// queries/s and objective, and its planner.
func followed(t *testing.T, demand float64, slo serving.SLO) (*engine.Engine, *plan.Plan, *static.Planner) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu"}}, Workers: []serving.Worker{{Name: "a"}, {Name: "b"}},
		Apps: []serving.App{
			{
				Name: "app", SLO: slo, Weight: 1,
				QueueLimit: 100, Stages: []serving.StageID{0, 1},
			},
		},
		Stages: []serving.Stage{
			{Name: "detect", Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 2}}}, {
				Name: "read", Variants: []serving.VariantID{1}, Joins: 1,
			},
		},
		Variants: []serving.Variant{
			{Name: "d", Accuracy: 1, MaxBatch: 16}, {Name: "r", Stage: 1, Accuracy: 1, MaxBatch: 16},
		},
	}
	p := profile.Constant{Base: 2 * time.Millisecond, PerItem: 500 * time.Microsecond}
	planner := &static.Planner{
		Profile: p, Instances: []static.Instance{
			{Worker: 0, Variants: []serving.VariantID{0}}, {Worker: 1, Stage: 1, Variants: []serving.VariantID{1}},
		},
	}
	first, err := planner.Plan(context.Background(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	first.Demand = []float64{demand}
	e, err := systems.System{
		Router: "weighted", Batcher: "earlydrop", Scaler: "complexity",
	}.Engine(spec, p, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	return e, first, planner
}

// Following content allocates nothing while the content does not change.
func TestFollowingDoesNotAllocate(t *testing.T) {
	e, first, _ := followed(t, 200, serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99})
	d := &driver{e: e, due: make([]due, 0, 1<<12), in: make([]engine.Input, 0, 64)}
	d.in = append(d.in, engine.Input{Kind: engine.PlanReady, Plan: first})
	d.step(0)
	for range 10_000 {
		d.arrive(5_000_000, 100*time.Millisecond)
	}
	if n := testing.AllocsPerRun(1000, func() { d.arrive(5_000_000, 100*time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations for a query", n)
	}
}

// untilAsked has an engine with a plan serve queries of which the second stage takes three times as long as believed,
// and returns its first request for a plan.
func untilAsked(t *testing.T, e *engine.Engine, first *plan.Plan) (asked *engine.Decision) {
	t.Helper()
	e.Step(0, []engine.Input{{Kind: engine.PlanReady, Plan: first}})
	e.Step(1, []engine.Input{
		{
			Kind: engine.InstanceChanged, Instance: 1, Variant: 0,
		}, {Kind: engine.InstanceChanged, Instance: 2, Variant: 1},
	})
	type ends struct {
		at serving.Time
		in engine.Input
	}
	var running []ends
	for arrives := serving.Time(10e6); asked == nil && arrives < 20e9; {
		now := arrives
		for _, x := range running {
			now = min(now, x.at)
		}
		var in []engine.Input
		running = slices.DeleteFunc(running, func(x ends) bool {
			if x.at == now {
				in = append(in, x.in)
			}
			return x.at == now
		})
		if now == arrives {
			in = append(in, engine.Input{Kind: engine.QueryArrived, Query: serving.Query{
				ID: serving.QueryID(now), Arrived: now, Deadline: now.Add(100 * time.Millisecond), Items: 1,
				Variant: serving.None,
			}})
			arrives += 20e6
		}
		engine.Sort(in)
		out := e.Step(now, in)
		for k := range out {
			switch d := out[k]; d.Kind {
			case engine.RequestPlan:
				asked = &d
			case engine.StartBatch:
				in := engine.Input{Kind: engine.BatchDone, Batch: d.Batch, Instance: d.Instance, Took: d.Expected}
				if d.Stage == 0 {
					for range d.Tasks {
						in.Emitted = append(in.Emitted, 5)
					}
				} else {
					in.Took *= 3
				}
				running = append(running, ends{now.Add(in.Took), in})
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if asked == nil {
		t.Fatal("nothing was asked")
	}
	return asked
}

// A request for a plan has a proposed objective as long as would be proposed by what is believed by then, so that no
// planner leaves the app out. The objective of the run stays, and so does one that was asked for.
func TestRequestsStretchProposedObjectives(t *testing.T) {
	for _, proposed := range []bool{false, true} {
		e, first, _ := followed(t, 200, serving.SLO{Latency: 20 * time.Millisecond, Percentile: 99, Proposed: proposed})
		asked := untilAsked(t, e, first)
		r, want := asked.Request, 20*time.Millisecond
		if proposed {
			want = profile.Objective(e.Spec(), r.Beliefs, 0, 1)
		}
		if got := r.Spec.Apps[0].SLO.Latency; got != want || e.Spec().Apps[0].SLO.Latency != 20*time.Millisecond {
			t.Errorf("proposed %v: planned for %v, want %v; the run's is %v", proposed, got, want, e.Spec().Apps[0].SLO)
		}
	}
}

// A request carries the factors observed: other fan-outs, and inflated beliefs at one stage. The plan that comes
// carries them, and the engine's spec stays as it was.
func TestRequestsCarryFactors(t *testing.T) {
	e, first, planner := followed(t, 200, serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99})
	asked := untilAsked(t, e, first)
	r := *asked.Request
	if len(r.FanOuts) != 2 || len(r.FanOuts[0]) != 1 || r.FanOuts[0][0] != 5 || len(r.Ballooning) != 2 ||
		r.Ballooning[0] != 1 || r.Ballooning[1] < 2.9 || r.Ballooning[1] > 3.1 {
		t.Fatalf("fan-outs %v, ballooning %v, want 5, and 1 and 3", r.FanOuts, r.Ballooning)
	}
	if r.Spec.Stages[0].Next[0].FanOut != 5 || e.Spec().Stages[0].Next[0].FanOut != 2 {
		t.Errorf("the request's graph sends %v, that of the run %v", r.Spec.Stages[0].Next, e.Spec().Stages[0].Next)
	}
	if a, b := r.Beliefs.Latency(0, 0, 4, 1), r.Beliefs.Latency(1, 0, 4, 1); a != 4*time.Millisecond ||
		b < 11*time.Millisecond || b > 13*time.Millisecond {
		t.Errorf("4 items are believed to take %v and %v, want 4ms and 12ms", a, b)
	}
	made, err := planner.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	// 6 ms + 12 x 1.5 ms in 25 ms
	if was, is := first.Instances[1].Variants[0].Limit, made.Instances[1].Variants[0].Limit; was != 16 || is != 12 {
		t.Errorf("batches to read hold %d, before %d, want 12 and 16", is, was)
	}
	e.Step(21e9, []engine.Input{{Kind: engine.PlanReady, Plan: made}})
	if p := e.Plan(); p.FanOuts == nil || p.FanOuts[0][0] != 5 || p.Ballooning == nil || made.FanOuts != nil {
		t.Errorf("the plan in force was made with %v and %v", p.FanOuts, p.Ballooning)
	}
}
