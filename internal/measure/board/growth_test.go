package board_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// A board follows a world that grows: queries to an app that came later are counted, and what it held stays.
func TestBoardOfAGrowingWorld(t *testing.T) {
	spec := func(apps ...string) *serving.Spec {
		s := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}}}
		for k, name := range apps {
			s.Apps = append(s.Apps, serving.App{Name: name, Stages: []serving.StageID{serving.StageID(k)},
				SLO: serving.SLO{Latency: time.Second, Percentile: 99}})
			s.Stages = append(s.Stages, serving.Stage{Name: name, App: serving.AppID(k),
				Variants: []serving.VariantID{serving.VariantID(k)}})
			s.Variants = append(s.Variants, serving.Variant{Name: name, Stage: serving.StageID(k), MaxBatch: 4})
		}
		return s
	}
	log := steps.New(spec("first"), steps.Options{})
	b := board.New(spec("first"), log, board.Options{})
	arrive := func(now serving.Time, app serving.AppID) {
		log.Observe(now, []engine.Input{engine.NewQueryArrived(serving.Query{App: app, Arrived: now, Items: 1})}, nil)
	}
	second := serving.Time(time.Second)
	arrive(0, 0)
	arrive(second, 1) // not there yet: it is refused, and counts for no app
	log.Observe(3*second, []engine.Input{engine.NewSpecGrown(&engine.Growth{Spec: spec("first", "later")})}, nil)
	arrive(3*second, 1)
	arrive(4*second, 0)
	arrive(4*second, 1)
	o := b.Overview()
	if len(o.Apps) != 2 || o.Apps[0].Hour.Offered != 2 || o.Apps[1].Hour.Offered != 2 {
		t.Errorf("%+v", o.Apps)
	}
	if s := b.Series(1, 0, 10, 1); len(s.At) != 4 || s.Offered[3] != 1 || s.Offered[0] != 0 {
		t.Errorf("%+v", s)
	}
	if v, ok := b.AppView("later"); !ok || v.Now.Offered != 2 {
		t.Errorf("%+v", v)
	}
}

// A batch of a model that came later is compared by what was measured of it.
func TestCompareInAGrownWorld(t *testing.T) {
	first := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}}}
	app := serving.App{Weight: 1, QueueLimit: 1, SLO: serving.SLO{Latency: time.Second, Percentile: 99}}
	first, _, _ = first.WithApp(app, serving.Variant{Name: "first", Accuracy: 1, MaxBatch: 1}, nil)
	grown, _, _ := first.WithApp(app, serving.Variant{Name: "later", Accuracy: 1, MaxBatch: 1}, nil)
	var measured serving.Measurements
	profiled := func(spec *serving.Spec, took time.Duration) profile.Profile {
		measured.Latency = append(measured.Latency, serving.LatencyPoint{
			Variant: serving.VariantID(len(measured.Latency)), Items: 1, Concurrency: 1, Mean: took,
		})
		p, err := profile.NewTable(spec, measured, profile.Mean)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	log := steps.New(first, steps.Options{})
	b := board.New(first, log, board.Options{Measured: profiled(first, time.Millisecond)})
	second := serving.Time(time.Second)
	log.Observe(second, []engine.Input{engine.NewSpecGrown(&engine.Growth{
		Spec: grown, Known: plan.Known{Profile: profiled(grown, 7*time.Millisecond)},
	})}, []engine.Decision{{Kind: engine.LaunchInstance, Instance: 1,
		Launch: &engine.Launch{Slots: 1, Stage: 1, Variants: []serving.VariantID{1}}}})
	log.Observe(2*second, []engine.Input{engine.NewVariantReady(1, 1)}, []engine.Decision{{
		Kind: engine.StartBatch, Batch: 1, Instance: 1, Stage: 1, Variant: 1, Items: 1, Expected: time.Millisecond,
		Tasks: make([]engine.Task, 1)}})
	waiting := make([]steps.Waiting, 2)
	for k := range waiting {
		waiting[k] = steps.Waiting{Items: 1, Due: 3 * second, Pin: serving.None, In: k == 0}
	}
	log.Observe(2*second+1000, []engine.Input{engine.NewBatchDone(1, 1, time.Microsecond, nil)}, nil)
	c, ok := b.Compare(1, waiting)
	if !ok || len(c.Candidates) == 0 || c.Candidates[0].Variant != "later" {
		t.Errorf("%+v, %v", c, ok)
	}
}
