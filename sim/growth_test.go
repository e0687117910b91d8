package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// believing is a truth that equals a profile.
type believing struct{ profile.Profile }

func (believing) Draw(serving.VariantID, serving.DeviceTypeID, int, int) float64 { return 0 }

func (b believing) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	_ float64) time.Duration {
	return b.Latency(v, d, items, concurrency)
}

// In worlds that grow at random while workers are lost, the invariants hold after every step, every query ends, and no
// instance of a closed app or retired variant is left in the end.
func TestRandomGrowth(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := simtest.Random(rng)
		routers := systems.Routers()
		router := routers[rng.IntN(len(routers))]
		batchers := systems.BatchersFor(router)
		s := systems.System{
			Router: router, Batcher: batchers[rng.IntN(len(batchers))],
			Scaler: []string{"fixed", "replan", "mixshift"}[rng.IntN(3)],
		}
		if seed%4 == 0 {
			s.Scaler = "complexity"
		}
		s.Options.Following.TurnOff = time.Duration(seed%3) * time.Second
		name := fmt.Sprintf("seed %d, %s+%s+%s", seed, s.Router, s.Batcher, s.Scaler)
		worlds := c.Grown(rng, 8)
		last := *c
		last.Spec = worlds[len(worlds)-1].Spec
		load := last.Load(rng, 400)
		end := load[len(load)-1].At
		var growths []Growth
		for k, g := range worlds {
			growths = append(growths, Growth{At: end / 10 * serving.Time(k+1), Growth: g})
		}
		var faults []Fault
		for k := range rng.IntN(4) {
			faults = append(faults, Fault{
				At: end / 5 * serving.Time(k+1), Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
			})
		}
		planner, err := systems.NewOpen(plan.Known{Profile: c.Profile}, c.Spreading)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Engine(c.Spec, c.Profile, planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		// The run ends with the last query. Draining instances then need a moment more.
		load = append(load, workload.Arrival{
			At: end.Add(20 * time.Second), Variant: serving.None, Items: 1, Timeout: 2 * time.Second,
		})
		_, err = Run(Config{Spec: c.Spec, Engine: e, Truth: believing{worlds[len(worlds)-1].Profile},
			Source: workload.FromSlice(load), Initial: c.Plan, Planner: planner,
			PlanDelay: 3 * time.Millisecond, Growths: growths, Faults: faults, Check: true,
			Limit: serving.Time(10 * time.Minute)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Pending() > 0 {
			t.Errorf("%s: %d queries have not ended", name, e.Pending())
		}
		for _, i := range e.Fleet().Live() {
			if i.State() == fleet.Draining {
				continue
			}
			if app := last.Spec.Apps[last.Spec.Stages[i.Stage()].App]; app.Closed {
				t.Errorf("%s: instance %d of closed app %q is still there", name, i.ID(), app.Name)
			}
			for k := range i.Variants() {
				l := i.Variant(k)
				if last.Spec.Variants[l.Variant].Retired && l.Warm {
					t.Errorf("%s: retired variant %q is still loaded on instance %d", name,
						last.Spec.Variants[l.Variant].Name, i.ID())
				}
			}
		}
	}
}

// function runs a function that takes 4 ms for a query and 200 ms to load, on one worker of the given memory, from time
// 0. The worlds of growths replace each other every second. Queries come every 5 ms from 0.5 s until the end. It
// returns the outcomes of queries and all decisions.
func function(t *testing.T, memory int64, end time.Duration, growths func(spec *serving.Spec, a serving.AppID,
	v serving.Variant) []*serving.Spec) (ended map[string]int, said []string) {
	t.Helper()
	base := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "cpu", Cores: 2, MemoryBytes: memory},
		}, Workers: []serving.Worker{{Name: "w"}},
	}
	app := serving.App{
		Name: "f", Weight: 1, QueueLimit: 100, SLO: serving.SLO{Latency: 50 * time.Millisecond, Percentile: 99},
	}
	v := serving.Variant{Name: "f.1", Accuracy: 1, MaxBatch: 4, MemoryBytes: 60}
	spec, a, _ := base.WithApp(app, v, nil)
	p := profile.Constant{Base: 3 * time.Millisecond, PerItem: time.Millisecond, LoadTime: 200 * time.Millisecond}
	maker := func(p profile.Profile, _ *serving.Open) (plan.Planner, error) {
		return &static.Planner{Profile: p, Spread: true}, nil
	}
	planner, err := systems.NewOpen(plan.Known{Profile: p}, maker)
	if err != nil {
		t.Fatal(err)
	}
	e, err := systems.System{Router: "earliestfinish", Batcher: "mostaccurate"}.Engine(base, p, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	list := []Growth{{Growth: &engine.Growth{Spec: spec, Known: plan.Known{Profile: p}}}}
	for k, s := range growths(spec, a, v) {
		list = append(list, Growth{
			At:     serving.Time(k+1) * serving.Time(time.Second),
			Growth: &engine.Growth{Spec: s, Known: plan.Known{Profile: p}},
		})
	}
	var load []workload.Arrival
	for at := 500 * time.Millisecond; at < end; at += 5 * time.Millisecond {
		load = append(load, workload.Arrival{At: serving.Time(at), App: a, Items: 1, Variant: serving.None})
	}
	ended = make(map[string]int)
	_, err = Run(Config{Spec: base, Engine: e, Truth: believing{p}, Source: workload.FromSlice(load), Planner: planner,
		PlanDelay: time.Millisecond, Growths: list, Check: true,
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				said = append(said, fmt.Sprintf("%v %s", now, &out[k]))
				if d := &out[k]; d.Kind == engine.EndQuery {
					ended[fmt.Sprintf("%s %s variant %d late %v", d.Outcome, d.Reason, d.Variant, d.Late)]++
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return ended, said
}

// When a function is replaced under load, every query is served in time, by the old version until the new one is warm.
func TestUpdateFailsNothing(t *testing.T) {
	ended, said := function(t, 0, 2500*time.Millisecond,
		func(spec *serving.Spec, a serving.AppID, v serving.Variant) []*serving.Spec {
			v.Name = "f.2"
			next, _ := spec.WithVersion(a, spec.Apps[a], v, nil)
			return []*serving.Spec{next}
		})
	old, fresh := ended["served answered variant 0 late false"], ended["served answered variant 1 late false"]
	if old < 130 || fresh < 250 || old+fresh != 400 {
		t.Errorf("%v: want 400 queries, all served in time, those of the first 0.7 s by variant 0", ended)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "unload-variant i1 variant 0") }) {
		t.Error("the old version was not unloaded")
	}
}

// Where a worker's memory does not hold both versions, the old one stops first. Queries that then wait too long are
// dropped and do not fail.
func TestUpdateInTightMemory(t *testing.T) {
	ended, _ := function(t, 100, 2500*time.Millisecond,
		func(spec *serving.Spec, a serving.AppID, v serving.Variant) []*serving.Spec {
			v.Name = "f.2"
			next, _ := spec.WithVersion(a, spec.Apps[a], v, nil)
			return []*serving.Spec{next}
		})
	for how, n := range ended {
		if !strings.HasPrefix(how, "served") && !strings.HasPrefix(how, "dropped") {
			t.Errorf("%d queries: %s", n, how)
		}
	}
	if ended["served answered variant 1 late false"] < 200 {
		t.Errorf("%v: the new version does not serve", ended)
	}
}

// Queries that wait when their function is deleted are answered, later ones are refused, and its instance is released.
func TestDeletedFunctionAnswersWhatItAccepted(t *testing.T) {
	ended, said := function(t, 0, 1500*time.Millisecond,
		func(spec *serving.Spec, a serving.AppID, _ serving.Variant) []*serving.Spec {
			return []*serving.Spec{spec.WithClosed(a)}
		})
	if ended["served answered variant 0 late false"] != 100 ||
		ended["refused the function was deleted variant -1 late false"] != 100 {
		t.Errorf("%v: want 100 served and 100 refused", ended)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "stop-instance i1") }) {
		t.Error("the instance was not stopped")
	}
}
