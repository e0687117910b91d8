package board_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/board"
	"github.com/sluice-serving/sluice/serving"
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
	b := board.New(spec("first"), board.Options{})
	arrive := func(now serving.Time, app serving.AppID) {
		b.Observe(now, []engine.Input{engine.NewQueryArrived(serving.Query{App: app, Arrived: now, Items: 1})}, nil)
	}
	second := serving.Time(time.Second)
	arrive(0, 0)
	arrive(second, 1) // not there yet: it is refused, and counts for no app
	b.Observe(3*second, []engine.Input{engine.NewSpecGrown(&engine.Growth{Spec: spec("first", "later")})}, nil)
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
