package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Clients of a session join and leave: the engine gets an input for each, and every plan is for the declared rates of
// the present clients at least.
func TestSessionsAreDeclared(t *testing.T) {
	load := workload.Spec{
		Seed: 1, DurationS: 60, Apps: []workload.AppSpec{
			{App: "app", Process: "sessions", Sessions: workload.SessionsSpec{Clients: 12, RateMin: 2, RateMax: 5}},
		},
	}
	resolve := func(string) (serving.AppID, error) { return 0, nil }
	src, err := load.Source(resolve)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := load.Clients(resolve)
	if err != nil {
		t.Fatal(err)
	}
	c := simtest.Uniform(4, 5*time.Millisecond, time.Millisecond, 400*time.Millisecond, 8)
	system := systems.System{Router: "shortestqueue", Batcher: "greedy", Scaler: "replan"}
	system.Options.Replan = time.Hour
	e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	opened, closed, asked := 0, 0, 0
	_, err = Run(Config{Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true, Source: src, Clients: stays,
		Planner: c.Planner, Check: true,
		Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
			for i := range in {
				switch in[i].Kind {
				case engine.StreamOpened:
					opened++
				case engine.StreamClosed:
					closed++
				}
			}
			declared := 0.0
			for _, s := range stays {
				if s.From <= now && now < s.Until {
					declared += s.Rate
				}
			}
			for i := range out {
				if d := &out[i]; d.Kind == engine.RequestPlan {
					asked++
					if d.Request.Rates[0] < declared-1e-9 {
						t.Errorf("at %v a plan for %v/s, clients send %v/s", now, d.Request.Rates[0], declared)
					}
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if opened != 12 || closed < 11 || asked < 20 { // the last may leave after its last query, when the run is over
		t.Errorf("%d opened, %d closed, %d plans asked for (seed 1)", opened, closed, asked)
	}
}

// From outside, on random graphs, loads and failures with every router: at a stateful stage no two batches hold queries
// of one stream at a time, no batch holds two, and queries begin in order of arrival. Without failures every query of a
// stream ends unless it is dropped.
func TestStreamsAreServedInOrder(t *testing.T) {
	kept, waited := 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 21))
		c := simtest.Random(rng)
		for s := range c.Spec.Stages {
			c.Spec.Stages[s].Stateful = c.Spec.Stages[s].Stateful || rng.IntN(2) == 0
			c.Spec.Stages[s].Confidences = nil
		}
		load := c.Load(rng, 400)
		routers := systems.Routers()
		router := routers[int(seed)%len(routers)]
		batchers := systems.BatchersFor(router)
		system := systems.System{Router: router, Batcher: batchers[rng.IntN(len(batchers))]}
		e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			stage  serving.StageID
			stream uint64
		}
		running, last := make(map[key]serving.BatchID), make(map[key]serving.QueryID)
		held := make(map[serving.BatchID][]key)
		on := make(map[serving.BatchID]serving.InstanceID)
		free := func(b serving.BatchID) {
			for _, k := range held[b] {
				delete(running, k)
			}
			delete(held, b)
		}
		var faults []Fault
		if seed%3 == 0 {
			faults = append(faults, Fault{
				At: load[len(load)/2].At, Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
			})
		}
		ended := 0
		_, err = Run(Config{
			Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Source: workload.FromSlice(load), Faults: faults,
			Check: true, Limit: serving.Time(10 * time.Minute),
			Breaks: func(serving.BatchID) bool { return seed%2 == 0 && rng.IntN(30) == 0 },
			Observe: func(_ serving.Time, in []engine.Input, out []engine.Decision) {
				for i := range in {
					switch x := &in[i]; {
					case x.Kind == engine.BatchDone:
						free(x.Batch)
					case x.Kind == engine.InstanceChanged && x.Change == engine.Lost:
						for b := range held {
							if on[b] == x.Instance {
								free(b)
							}
						}
					}
				}
				for i := range out {
					d := &out[i]
					if d.Kind == engine.EndQuery {
						ended++
					}
					if d.Kind != engine.StartBatch || !c.Spec.Stages[d.Stage].Stateful {
						continue
					}
					on[d.Batch] = d.Instance
					for _, p := range d.Tasks {
						k := key{d.Stage, load[p.Query-1].Stream}
						if k.stream == 0 {
							continue
						}
						if b, busy := running[k]; busy {
							t.Fatalf("seed %d: stage %d runs query %d of stream %d in batch %d, and so does batch %d",
								seed, d.Stage, p.Query, k.stream, d.Batch, b)
						}
						if p.Query < last[k] {
							t.Fatalf("seed %d: stage %d runs query %d of stream %d after query %d", seed, d.Stage,
								p.Query, k.stream, last[k])
						}
						running[k], last[k] = d.Batch, p.Query
						held[d.Batch] = append(held[d.Batch], k)
						kept++
						if p.Queue > 0 {
							waited++
						}
					}
				}
			}})
		if err != nil {
			t.Fatalf("seed %d, %s + %s: %v", seed, system.Router, system.Batcher, err)
		}
		if ended != len(load) {
			t.Errorf("seed %d: %d of %d queries ended", seed, ended, len(load))
		}
	}
	if kept < 1000 || waited == 0 {
		t.Errorf("%d queries of streams ran in order, %d of them had waited: too few to tell", kept, waited)
	}
}
