package board_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// A first look says how busy a worker was lately, not since the start: idle for a minute, then busy for all of the time
// since the mark before the last.
func TestBusyOfAFirstLook(t *testing.T) {
	const second = serving.Time(time.Second)
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps:     []serving.App{{Name: "app", Stages: []serving.StageID{0}}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", MaxBatch: 4}},
	}
	log := steps.New(spec, steps.Options{})
	b := board.New(spec, log, board.Options{})
	log.Observe(0, nil, []engine.Decision{{Kind: engine.LaunchInstance, Instance: 1,
		Launch: &engine.Launch{Slots: 1, Variants: []serving.VariantID{0}}}})
	log.Observe(0, []engine.Input{engine.NewVariantReady(1, 0)}, nil)
	for s := range serving.Time(60) {
		b.Advance(s * second)
		b.Mark()
	}
	busy := func() float64 {
		var l board.Look
		return b.Machines(&l).States[0].Busy
	}
	log.Observe(60*second, nil, []engine.Decision{{Kind: engine.StartBatch, Batch: 1, Instance: 1, Items: 1,
		Expected: time.Minute, Tasks: make([]engine.Task, 1)}})
	if x := busy(); x != 0 {
		t.Errorf("busy %v before the batch has run", x)
	}
	for s := serving.Time(61); s <= 75; s++ {
		b.Advance(s * second)
		b.Mark()
	}
	if x := busy(); x != 1 {
		t.Errorf("busy %v in the latest seconds, want all of the time", x)
	}
	b.Advance(78 * second)
	log.Observe(78*second, []engine.Input{engine.NewBatchDone(1, 1, 18*time.Second, nil)}, nil)
	b.Advance(79 * second)
	if x := busy(); !(x > 0.85 && x < 1) {
		t.Errorf("busy %v, want the eight of nine seconds since the mark before the last", x)
	}
}
