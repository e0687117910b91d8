package board_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// A reader gets what runs and what has ended since it looked, of the workers that it names, and no more than so much.
func TestRecent(t *testing.T) {
	const at = serving.Time(time.Millisecond)
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "a"}, {Name: "b"}},
		Apps:     []serving.App{{Name: "app", Stages: []serving.StageID{0}}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", MaxBatch: 4}},
	}
	log := steps.New(spec, steps.Options{})
	b := board.New(spec, log, board.Options{})
	for w := range 2 {
		d := engine.Decision{Kind: engine.LaunchInstance, Instance: serving.InstanceID(w + 1),
			Launch: &engine.Launch{Slots: 1, Variants: []serving.VariantID{0}}}
		d.Launch.Key.Worker = serving.WorkerID(w)
		log.Observe(0, []engine.Input{}, []engine.Decision{d})
	}
	batch := serving.BatchID(0)
	run := func(from, to serving.Time, i serving.InstanceID) {
		batch++
		log.Observe(from, nil, []engine.Decision{{Kind: engine.StartBatch, Batch: batch, Instance: i, Items: 2,
			Expected: 9 * time.Millisecond, Tasks: make([]engine.Task, 2)}})
		if to > 0 {
			log.Observe(to, []engine.Input{engine.NewBatchDone(batch, i, to.Sub(from), nil)}, nil)
		}
	}
	run(10*at, 20*at, 1)
	run(30*at, 40*at, 2)
	run(50*at, 60*at, 1)
	run(70*at, 0, 1)
	got := b.Recent([]int{0, 7, -1}, 30*at)
	if len(got.Batches) != 2 || got.NowS != 0.07 {
		t.Fatalf("%+v", got)
	}
	for _, x := range got.Batches {
		third := x.Batch != 3 || *x.EndS == 0.06 && x.StartedS == 0.05
		if x.Worker != 0 || (x.Batch == 4) != (x.EndS == nil) || !third {
			t.Errorf("%+v", x)
		}
	}
	for k := range serving.Time(2 * board.MostRecent) {
		run((100+2*k)*at, (101+2*k)*at, 2)
	}
	if n := len(b.Recent([]int{0, 1}, 0).Batches); n != board.MostRecent {
		t.Errorf("%d batches, want %d", n, board.MostRecent)
	}
}
