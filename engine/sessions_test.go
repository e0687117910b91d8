package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// When a client joins or leaves, every scaler that plans asks at once for a plan for the declared rates of the present
// clients, even before any query. A rate that changes nothing leads to no request.
func TestJoiningAndLeavingAsksForAPlan(t *testing.T) {
	asking := 0
	for _, scaler := range systems.Scalers() {
		s := systems.System{Name: "test", Router: "shortestqueue", Batcher: "greedy", Scaler: scaler}
		s.Options.Replan = time.Second // the pause between requests
		if scaler == "periodic" || scaler == "replan" || scaler == "arrivals" ||
			scaler == "anticipate" {
			s.Options.Replan = time.Hour // their interval
		}
		c := simtest.Uniform(1, time.Millisecond, time.Millisecond, 100*time.Millisecond, 8)
		e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		at := serving.Time(0)
		// step moves time far enough for every scaler's pause, and answers requests.
		step := func(in ...engine.Input) (rate float64, asked bool) {
			for range 20 {
				at += serving.Time(time.Second)
				for _, d := range e.Step(at, in) {
					if d.Kind == engine.RequestPlan {
						rate, asked = d.Request.Rates[0], true
						p := *c.Plan
						p.Snapshot = d.Request.Snapshot.Seq
						at++
						e.Step(at, []engine.Input{{Kind: engine.PlanReady, Plan: &p}})
					}
				}
				in = in[:0]
				if err := e.Check(); err != nil {
					t.Fatal(err)
				}
			}
			return rate, asked
		}
		change := func(k engine.InputKind, stream uint64, rate float64) []engine.Input {
			return []engine.Input{{Kind: k, Query: serving.Query{Stream: stream}, Rate: rate}}
		}
		step(engine.Input{Kind: engine.PlanReady, Plan: c.Plan})
		if _, asked := step(change(engine.StreamClosed, 9, 0)...); asked {
			t.Errorf("%s asks when a client leaves that was not there", scaler)
		}
		rate, asked := step(change(engine.StreamOpened, 1, 40)...)
		if !asked {
			if scaler != "fixed" {
				t.Errorf("%s does not ask when a client joins", scaler)
			}
			continue
		}
		asking++
		if rate != 40 {
			t.Errorf("%s: a plan for %v/s, want the 40/s declared", scaler, rate)
		}
		if rate, asked = step(append(change(engine.StreamOpened, 2, 60),
			change(engine.StreamClosed, 1, 0)...)...); !asked || rate != 60 {
			t.Errorf("%s: one has come and one gone, asked %v for %v/s, want 60/s", scaler, asked, rate)
		}
		if _, asked = step(change(engine.StreamOpened, 2, 60)...); asked {
			t.Errorf("%s asks for what it knew", scaler)
		}
		if rate, asked = step(change(engine.StreamClosed, 2, 0)...); !asked || rate >= 40 {
			t.Errorf("%s: the last has gone, asked %v for %v/s", scaler, asked, rate)
		}
	}
	if asking < 3 {
		t.Errorf("%d scalers have asked", asking)
	}
}

// A stream that cannot be opened is reported as a driver's fault and does not count.
func TestBadStreams(t *testing.T) {
	for _, in := range []engine.Input{
		{Kind: engine.StreamOpened, Query: serving.Query{App: 1, Stream: 1}, Rate: 1},
		{Kind: engine.StreamOpened, Query: serving.Query{App: -1, Stream: 1}, Rate: 1},
		{Kind: engine.StreamOpened, Rate: 1},
		{Kind: engine.StreamOpened, Query: serving.Query{Stream: 1}, Rate: -1},
	} {
		c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
		e, err := systems.System{
			Router: "shortestqueue", Batcher: "greedy",
		}.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		e.Step(1, []engine.Input{in})
		if e.Check() == nil {
			t.Errorf("%+v passes", in)
		}
	}
}

// At one instant streams are opened before they are closed, both before plans and queries. Streams of two apps with the
// same number are distinct.
func TestSortStreams(t *testing.T) {
	in := []engine.Input{
		{Kind: engine.QueryArrived, Query: serving.Query{ID: 1}},
		{Kind: engine.StreamClosed, Query: serving.Query{App: 1, Stream: 1}},
		{Kind: engine.StreamClosed, Query: serving.Query{App: 0, Stream: 1}},
		{Kind: engine.PlanFailed},
		{Kind: engine.StreamOpened, Query: serving.Query{Stream: 7}},
		{Kind: engine.PriceChanged},
		{Kind: engine.StreamOpened, Query: serving.Query{App: 3, Stream: 2}},
	}
	engine.Sort(in)
	for k, want := range []struct {
		kind   engine.InputKind
		app    serving.AppID
		stream uint64
	}{
		{engine.PriceChanged, 0, 0}, {engine.StreamOpened, 3, 2}, {engine.StreamOpened, 0, 7},
		{engine.StreamClosed, 0, 1}, {engine.StreamClosed, 1, 1}, {engine.PlanFailed, 0, 0},
		{engine.QueryArrived, 0, 0},
	} {
		if q := in[k].Query; in[k].Kind != want.kind || q.App != want.app || q.Stream != want.stream {
			t.Errorf("input %d is %v of stream %d of app %d, want %+v", k, in[k].Kind, q.Stream, q.App, want)
		}
	}
}

// Clients that join by thousands have one plan made for all that have come by then, not one each. The last plan is for
// all of them.
func TestThousandsOfClientsMakeFewPlans(t *testing.T) {
	for _, scaler := range systems.Scalers() {
		s := systems.System{Name: "test", Router: "shortestqueue", Batcher: "greedy", Scaler: scaler}
		c := simtest.Uniform(1, time.Millisecond, time.Millisecond, 100*time.Millisecond, 8)
		e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		plans, last := 0, 0.0
		in := []engine.Input{engine.NewPlanReady(c.Plan)}
		const clients = 4000
		for k := range clients + 20_000 {
			now := serving.Time(1+2*k) * serving.Time(time.Millisecond)
			if k < clients {
				in = append(in, engine.NewStreamOpened(0, uint64(k+1), 0.5))
			}
			engine.Sort(in)
			out := e.Step(now, in)
			in = in[:0]
			for i := range out {
				if out[i].Kind != engine.RequestPlan {
					continue
				}
				if k < clients {
					plans++
				}
				last = out[i].Request.Rates[0]
				p := *c.Plan
				p.Snapshot, p.Demand = out[i].Request.Snapshot.Seq, out[i].Request.Rates
				in = append(in, engine.NewPlanReady(&p))
			}
		}
		if most := clients*2/1000 + 2; plans > most {
			t.Errorf("%s: %d plans while %d clients join within %d s, want at most %d", scaler, plans, clients,
				clients*2/1000, most)
		}
		if scaler != "fixed" && last != clients/2 {
			t.Errorf("%s: the last plan is for %v queries/s, want %d", scaler, last, clients/2)
		}
	}
}
