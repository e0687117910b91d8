package functions

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// The event of a cold start counts the queries that waited for it. Equal events in a row are one event. The oldest
// events are dropped first.
func TestEvents(t *testing.T) {
	spec, a, v := (&serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}},
		Workers: []serving.Worker{{Name: "w"}}}).WithApp(serving.App{Name: "f"},
		serving.Variant{Name: "f-v1", MaxBatch: 1}, nil)
	e := newEvents(6, &serving.Spec{})
	ms := func(n int) serving.Time { return serving.Time(n) * serving.Time(time.Millisecond) }
	arrived := engine.Input{Kind: engine.QueryArrived, Query: serving.Query{App: a}}
	late := engine.Decision{Kind: engine.EndQuery, App: a, Outcome: serving.Dropped, Reason: engine.WaitedTooLong}
	e.observe(0, []engine.Input{{Kind: engine.SpecGrown, Growth: &engine.Growth{Spec: spec}}}, nil)
	e.observe(ms(5), []engine.Input{arrived}, []engine.Decision{
		{
			Kind: engine.LaunchInstance, Instance: 1, Reason: engine.Planned, Launch: &engine.Launch{
				Key: fleet.Key{Worker: 0, Ordinal: 1}, Cores: 1, BatchLimit: 4,
			},
		},
	})
	e.observe(ms(6), []engine.Input{arrived, arrived}, []engine.Decision{late, late, late})
	e.observe(ms(105), []engine.Input{
		{Kind: engine.InstanceChanged, Instance: 1, Change: engine.VariantReady, Variant: v},
	}, nil)
	e.observe(ms(106), []engine.Input{arrived}, nil) // finds it ready
	e.observe(ms(205), nil, []engine.Decision{{Kind: engine.StopInstance, Instance: 1, Reason: engine.Unplanned}})
	show := func(list []Event) string {
		s := ""
		for _, x := range list {
			s += fmt.Sprintf("%s: %s x%d\n", x.Kind, x.Text, x.Count)
		}
		return s
	}
	all, known := e.of("f", 0, 100)
	want := `launch: instance 1 on w, 1 cores, batches of up to 4: in the plan x1
failure: queries dropped: deadline can no longer be met x3
ready: f-v1 on instance 1 x1
cold start: 3 queries came while no instance was ready, the first 100ms ago x1
stop: instance 1 after 200ms: no longer in the plan x1
`
	if got := show(all); got != want || !known {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for n := range 10 {
		e.add("f", "deploy", fmt.Sprint(n))
	}
	if all, _ = e.of("f", 0, 100); len(all) != 6 || all[0].Text != "4" || all[5].Text != "9" {
		t.Errorf("%s", show(all))
	}
	if all, _ = e.of("f", all[4].Seq, 100); len(all) != 1 || all[0].Text != "9" {
		t.Errorf("%s", show(all))
	}
	for n := range maxNames + 10 {
		e.add(fmt.Sprint(n), "deploy", "")
	}
	if len(e.rings) != maxNames {
		t.Errorf("events of %d functions are kept", len(e.rings))
	}
	if _, known := e.of("f", 0, 1); known {
		t.Error("the function that was silent longest is still known")
	}
}
