package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// comeAndGo is an engine on one worker to which one app comes after the other.
type comeAndGo struct {
	testing.TB
	e       *engine.Engine
	now     serving.Time
	query   serving.QueryID
	profile profile.Profile
}

func newComeAndGo(t testing.TB) *comeAndGo {
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}}}
	x := &comeAndGo{TB: t, profile: profile.Constant{Base: 10 * time.Millisecond, LoadTime: time.Millisecond}}
	e, err := engine.New(engine.Config{
		Spec: spec, Profile: x.profile, Router: &route.ShortestQueue{}, Batcher: batch.Greedy{}, Scaler: scale.Fixed{},
	})
	if err != nil {
		t.Fatal(err)
	}
	x.e = e
	return x
}

// step steps the engine a moment later. It answers requests for a plan with instances of the given stages.
func (x *comeAndGo) step(stages []serving.StageID, in ...engine.Input) (out []engine.Decision) {
	for again := true; again; {
		again = false
		x.now = x.now.Add(time.Millisecond)
		for _, d := range x.e.Step(x.now, in) {
			out = append(out, d)
			switch d.Kind {
			case engine.RequestPlan:
				p := &plan.Plan{Snapshot: d.Request.Snapshot.Seq}
				for _, s := range stages {
					st := x.e.Spec().Stages[s]
					p.Instances = append(p.Instances, plan.Instance{
						Stage: s, Slots: 1, Share: 1,
						Variants: []plan.Variant{{Variant: st.Variants[len(st.Variants)-1], Limit: 1}},
					})
				}
				in, again = []engine.Input{engine.NewPlanReady(p)}, true
			case engine.LaunchInstance:
				in, again = []engine.Input{engine.NewVariantReady(d.Instance, d.Launch.Variants[0])}, true
			case engine.LoadVariant:
				in, again = []engine.Input{engine.NewVariantReady(d.Instance, d.Variant)}, true
			}
		}
	}
	if err := x.e.Check(); err != nil {
		x.Fatal(err)
	}
	return out
}

func (x *comeAndGo) grow(spec *serving.Spec, stages ...serving.StageID) {
	x.Helper()
	x.step(stages, engine.NewSpecGrown(&engine.Growth{Spec: spec, Known: plan.Known{Profile: x.profile}}))
}

// app is the k-th app, with its variant.
func (*comeAndGo) app(k int) (serving.App, serving.Variant) {
	return serving.App{
		Name: fmt.Sprintf("f%d", k), Weight: 1, QueueLimit: 10, SLO: serving.SLO{Latency: time.Second, Percentile: 99},
	}, serving.Variant{Name: fmt.Sprintf("f%d.1", k), Accuracy: 1, MaxBatch: 1}
}

// asks sends a query, and returns the batch that runs it.
func (x *comeAndGo) asks(a serving.AppID) *engine.Decision {
	x.Helper()
	x.query++
	for _, d := range x.step(nil, engine.NewQueryArrived(serving.Query{
		ID: x.query, App: a, Arrived: x.now, Deadline: x.now.Add(time.Second), Items: 1, Variant: serving.None,
	})) {
		if d.Kind == engine.StartBatch {
			return &d
		}
	}
	x.Fatalf("query %d is not run", x.query)
	return nil
}

func (x *comeAndGo) isFree(a serving.AppID) bool {
	for _, f := range x.e.Free().Apps {
		if f == a {
			return true
		}
	}
	return false
}

// A closed app is free once its last batch has ended and a plan was made without it, and not before. An engine refuses
// a growth that takes the place of what is not free.
func TestFreeIsWhatNothingRefersTo(t *testing.T) {
	x := newComeAndGo(t)
	app, v := x.app(0)
	spec, a, id := x.e.Spec().WithApp(app, v, nil)
	x.grow(spec, spec.Source(a))
	if x.isFree(a) {
		t.Error("an open app is free")
	}
	runs := x.asks(a)
	next := app
	next.Name = "later"
	closed := spec.WithClosed(a)
	x.grow(closed)
	if x.isFree(a) {
		t.Error("an app with a batch that runs is free")
	}
	taken, _, _ := closed.WithApp(next, v, &serving.Free{Apps: []serving.AppID{a}})
	y := newComeAndGo(t)
	y.grow(spec, spec.Source(a))
	y.asks(a)
	y.grow(closed)
	y.now++
	y.e.Step(y.now, []engine.Input{engine.NewSpecGrown(&engine.Growth{
		Spec: taken, Known: plan.Known{Profile: y.profile},
	})})
	if err := y.e.Check(); err == nil || !strings.Contains(err.Error(), "something refers to it") {
		t.Errorf("a growth takes the place of an app that still runs: %v", err)
	}
	if y.e.Spec().Apps[a].Name != app.Name {
		t.Error("and it is in force")
	}
	x.step(nil, engine.NewBatchDone(runs.Batch, runs.Instance, 10*time.Millisecond, nil))
	if !x.isFree(a) {
		t.Fatal("an app of which nothing is left is not free")
	}
	free := x.e.Free()
	reused, b, w := x.e.Spec().WithApp(next, v, &free)
	if b != a || w != id || reused.Apps[b].Generation != 1 || reused.Variants[w].Generation != 1 {
		t.Errorf("app %d of generation %d, want %d of 1", b, reused.Apps[b].Generation, a)
	}
	x.grow(reused, reused.Source(b))
	if len(x.e.Free().Apps)+len(x.e.Free().Variants) > 0 {
		t.Error("something is free, and all is in use")
	}
	x.asks(b)
}

// A version that was replaced is free once no instance has it any more.
func TestReplacedVersionsAreFree(t *testing.T) {
	x := newComeAndGo(t)
	app, v := x.app(0)
	spec, a, _ := x.e.Spec().WithApp(app, v, nil)
	x.grow(spec, spec.Source(a))
	for k := range 1000 {
		v.Name = fmt.Sprintf("f0.%d", k+2)
		free := x.e.Free()
		next, _ := x.e.Spec().WithVersion(a, app, v, &free)
		x.grow(next, spec.Source(a))
		run := x.asks(a)
		if got := x.e.Spec().Variants[run.Variant].Name; got != v.Name {
			t.Fatalf("version %d runs, want %s", run.Variant, got)
		}
		x.step(nil, engine.NewBatchDone(run.Batch, run.Instance, 10*time.Millisecond, nil))
	}
	if s := x.e.Spec(); len(s.Variants) > 3 || len(s.Stages[0].Variants) > 3 {
		t.Errorf("%d variants after 1000 versions", len(s.Variants))
	}
}

// The tables do not grow with the apps that ever were.
func TestTablesAreAsLargeAsWhatIsThere(t *testing.T) {
	x := newComeAndGo(t)
	app, v := x.app(-1)
	spec, _, _ := x.e.Spec().WithApp(app, v, nil) // one that stays
	x.grow(spec, 0)
	for k := range 1000 {
		x.comesAndGoes(k)
	}
	if s := x.e.Spec(); len(s.Apps) > 3 || len(s.Stages) > 3 || len(s.Variants) > 3 {
		t.Errorf("%d apps, %d stages, %d variants after 1000 apps, one at a time beside another", len(s.Apps),
			len(s.Stages), len(s.Variants))
	}
}

// comesAndGoes adds an app, asks it, and closes it.
func (x *comeAndGo) comesAndGoes(k int) {
	x.Helper()
	app, v := x.app(k)
	free := x.e.Free()
	spec, a, _ := x.e.Spec().WithApp(app, v, &free)
	x.grow(spec, 0, spec.Source(a))
	run := x.asks(a)
	if got := x.e.Spec().Variants[run.Variant].Name; got != v.Name {
		x.Fatalf("%s runs for %s", got, app.Name)
	}
	x.step(nil, engine.NewBatchDone(run.Batch, run.Instance, 10*time.Millisecond, nil))
	x.grow(spec.WithClosed(a), 0)
}

// BenchmarkComesAndGoes shows what an app costs that comes, is asked and goes: the same after any number of them.
func BenchmarkComesAndGoes(b *testing.B) {
	for _, before := range []int{0, 1000, 10000} {
		b.Run(fmt.Sprintf("after=%d", before), func(b *testing.B) {
			x := newComeAndGo(b)
			app, v := x.app(-1)
			spec, _, _ := x.e.Spec().WithApp(app, v, nil)
			x.grow(spec, 0)
			for k := range before {
				x.comesAndGoes(k)
			}
			b.ReportAllocs()
			for k := 0; b.Loop(); k++ {
				x.comesAndGoes(before + k)
			}
		})
	}
}

// What a plan was made without stays free while the next plan is under way: a server that changes its models faster
// than plans are made must not grow either.
func TestFreeWhileAPlanIsMade(t *testing.T) {
	x := newComeAndGo(t)
	app, v := x.app(0)
	spec, a, _ := x.e.Spec().WithApp(app, v, nil)
	x.grow(spec, spec.Source(a))
	x.grow(spec.WithClosed(a))
	if !x.isFree(a) {
		t.Fatal("a closed app is not free")
	}
	next, w := x.app(1)
	spec, b, _ := x.e.Spec().WithApp(next, w, nil)
	for _, s := range []*serving.Spec{spec, spec.WithClosed(b)} {
		x.now++
		x.e.Step(x.now, []engine.Input{engine.NewSpecGrown(&engine.Growth{
			Spec: s, Known: plan.Known{Profile: x.profile},
		})})
		if !x.isFree(a) || x.isFree(b) {
			t.Errorf("free are %v, want %d alone", x.e.Free().Apps, a)
		}
	}
}
