package functions

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// remembering is an engine of many apps with a store.
func remembering(t *testing.T, spec *serving.Spec) *engine.Engine {
	t.Helper()
	e, err := systems.System{Router: "bands", Batcher: "filltimeout", Scaler: "ratebands"}.Engine(spec,
		profile.Constant{Base: time.Millisecond}, plan.Bands|plan.Shares|plan.Limits|plan.BatchTimeouts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Idle times of more apps than are read in one call survive the closing of the store, for apps that were called. Only
// changed ones are written again. Those of closed apps, and damaged or old ones, are removed.
func TestIdleTimes(t *testing.T) {
	const apps = 3*idleAtOnce + 5
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{}}}
	for a := range apps {
		spec, _, _ = spec.WithApp(serving.App{
			Name: fmt.Sprint("app", a), SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1,
			QueueLimit: 10, ColdWait: time.Second,
		}, serving.Variant{Name: "v", MaxBatch: 1}, nil)
	}
	dir := t.TempDir()
	s, err := store.OpenFunctions(dir)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	x, lost, err := OpenIdleTimes(s, begun)
	if err != nil || len(lost) > 0 {
		t.Fatal(lost, err)
	}
	e, clock, looks := remembering(t, spec), serving.Time(0), 0
	look := func(f func(*engine.Engine, serving.Time)) bool { looks++; f(e, clock); return true }
	call := func(at serving.Time, a int) {
		clock = at
		id := serving.QueryID(at) + serving.QueryID(a)
		e.Step(at, []engine.Input{
			{
				Kind: engine.QueryArrived, Query: serving.Query{
					ID: id, App: serving.AppID(a), Arrived: at, Deadline: at + 1e9, Items: 1, Variant: serving.None,
				},
			},
		})
		e.Step(at+1, []engine.Input{{Kind: engine.QueryCancelled, Query: serving.Query{ID: id}}})
		clock++
	}
	for n := range 8 {
		for a := range apps - 1 { // the last is not called
			call(serving.Time(n+1)*600e9+serving.Time(a)*1000, a)
		}
	}
	if err := x.Save(look, begun.Add(time.Duration(clock))); err != nil {
		t.Fatal(err)
	}
	if looks != 4 {
		t.Errorf("%d looks at the engine for %d apps, want 4", looks, apps)
	}
	kept := func() (n int) {
		if err := s.Each(store.IdleTable, func(string, []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := kept(); n != apps-1 {
		t.Errorf("%d apps are kept, want %d", n, apps-1)
	}
	// Only what has changed: the marks of the others would show a write.
	if err := s.Keep(store.IdleTable, map[string][]byte{"app0": []byte("mark"), "app1": []byte("mark")}); err != nil {
		t.Fatal(err)
	}
	call(9*600e9, 0)
	if err := x.Save(look, begun.Add(time.Duration(clock))); err != nil {
		t.Fatal(err)
	}
	zero, _ := s.Get(store.IdleTable, "app0")
	one, _ := s.Get(store.IdleTable, "app1")
	if string(zero) == "mark" || string(one) != "mark" {
		t.Errorf("after app0 was called: %.20s, %.20s", zero, one)
	}
	spec = spec.WithClosed(2)
	e.Step(clock, []engine.Input{
		{Kind: engine.SpecGrown, Growth: &engine.Growth{
			Spec: spec, Known: plan.Known{Profile: profile.Constant{Base: time.Millisecond}},
		}},
	})
	if err := x.Save(look, begun.Add(time.Duration(clock))); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != apps-2 {
		t.Errorf("%d apps are kept after one was closed, want %d", n, apps-2)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if s, err = store.OpenFunctions(dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stopped := begun.Add(time.Duration(clock))
	later := stopped.Add(time.Minute)
	if x, lost, err = OpenIdleTimes(s, later); err != nil || len(lost) != 1 || kept() != apps-3 {
		t.Fatalf("%v, %v, %d kept, want app1 reported", lost, err, kept())
	}
	e = remembering(t, spec)
	list, lost := x.Recall(spec, later, func(r *engine.Recalled) error {
		if r.App == 3 {
			return fmt.Errorf("of another rule")
		}
		return nil
	})
	if len(list) != apps-4 || len(lost) != 1 {
		t.Fatalf("%d recalled, %v, want %d and one lost", len(list), lost, apps-4)
	}
	for k := range list {
		want := time.Minute + time.Duration(clock) - 8*600*time.Second
		if list[k].App == 0 {
			want = time.Minute + time.Duration(clock) - 9*600*time.Second
		}
		if d := list[k].Idle - want; d.Abs() > time.Millisecond {
			t.Errorf("app %d is idle for %v, want %v", list[k].App, list[k].Idle, want)
		}
		e.Step(0, []engine.Input{{Kind: engine.IdleRecalled, Recalled: &list[k]}})
		if b := e.Remember(list[k].App, 0); len(b) < 10 {
			t.Errorf("app %d remembers %q", list[k].App, b)
		}
	}
	if again, _ := x.Recall(spec, later, nil); len(again) != 0 {
		t.Errorf("%d were recalled twice", len(again))
	}
	if _, _, err = OpenIdleTimes(s, later.Add(idleFor)); err != nil || kept() != 0 {
		t.Errorf("%d are kept for ever, %v", kept(), err)
	}
}
