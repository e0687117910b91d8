package board_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// linear is a profile: the accurate variant takes 10 ms and 5 ms an item, the quick one 2 ms and 1 ms; the second kind
// of machine is twice as fast.
type linear struct{ profile.Profile }

func (linear) Latency(v serving.VariantID, d serving.DeviceTypeID, items, _ int) time.Duration {
	t := time.Duration(10+5*items) * time.Millisecond
	if v == 1 {
		t = time.Duration(2+items) * time.Millisecond
	}
	return t / time.Duration(1+d)
}

// What could have begun instead of a batch is worked out by hand: five queries wait at 100 ms and are due at 130, 140,
// 150, 160 and 170 ms. The slow machine is free and has both variants, the fast one is busy until 120 ms and has the
// accurate one. The quick variant ran the first three.
func TestCompare(t *testing.T) {
	const at = serving.Time(time.Millisecond)
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "slow", PricePerHour: 0.36}, {Name: "fast", PricePerHour: 3.6}},
		Workers:     []serving.Worker{{Name: "s"}, {Name: "f", DeviceType: 1}},
		Apps: []serving.App{{Name: "app", Stages: []serving.StageID{0},
			SLO: serving.SLO{Latency: 80 * time.Millisecond, Percentile: 99}}},
		Stages: []serving.Stage{{Name: "app", Variants: []serving.VariantID{0, 1}}},
		Variants: []serving.Variant{{Name: "accurate", Accuracy: 0.8, MaxBatch: 4},
			{Name: "quick", Accuracy: 0.6, MaxBatch: 4}},
	}
	log := steps.New(spec, steps.Options{Batches: 4})
	b := board.New(spec, log, board.Options{Measured: linear{}})
	learning := board.New(spec, log, board.Options{Measured: linear{}, Learns: true})
	launch := func(id serving.InstanceID, w serving.WorkerID, v ...serving.VariantID) engine.Decision {
		d := engine.Decision{Kind: engine.LaunchInstance, Instance: id,
			Launch: &engine.Launch{Slots: 1, Variants: v, DeviceType: spec.Workers[w].DeviceType}}
		d.Launch.Key.Worker = w
		return d
	}
	start := func(id serving.BatchID, i serving.InstanceID, v serving.VariantID, run time.Duration) engine.Decision {
		return engine.Decision{Kind: engine.StartBatch, Batch: id, Instance: i, Variant: v, Items: 3, Expected: run,
			Tasks: make([]engine.Task, 3)}
	}
	log.Observe(0, nil, []engine.Decision{launch(1, 0, 0, 1), launch(2, 1, 0)})
	log.Observe(at, []engine.Input{engine.NewVariantReady(1, 0), engine.NewVariantReady(1, 1),
		engine.NewVariantReady(2, 0)}, nil)
	log.Observe(90*at, nil, []engine.Decision{start(1, 2, 0, 30*time.Millisecond)})
	log.Observe(100*at, nil, []engine.Decision{start(2, 1, 1, 5*time.Millisecond)})
	log.Observe(105*at, []engine.Input{engine.NewBatchDone(2, 1, 5*time.Millisecond, nil),
		engine.NewBatchDone(1, 2, 15*time.Millisecond, nil)}, []engine.Decision{
		{Kind: engine.UnloadVariant, Instance: 1, Variant: 0}, {Kind: engine.StopInstance, Instance: 2}})
	var waiting []steps.Waiting
	for k := range 5 {
		waiting = append(waiting, steps.Waiting{
			Items: 1, Due: serving.Time(130+10*k) * at, Pin: serving.None, In: k < 3,
		})
	}
	c, ok := b.Compare(2, waiting)
	if !ok {
		t.Fatal("the batch is not known")
	}
	if c.Waiting != 5 || c.SpareMS == nil || *c.SpareMS != 25 {
		t.Errorf("%d waited, the batch could have waited %v ms, want 5 and 25", c.Waiting, c.SpareMS)
	}
	type row struct {
		variant, kind string
		queries       int
		wait, run     float64
		inTime        int
		cost          float64
		why           string
	}
	want := []row{
		{"quick", "slow", 3, 0, 5, 3, 0.16667, ""},
		{"accurate", "slow", 3, 0, 25, 3, 0.83333, "possible: 20.0 points more accurate, for 5 times"},
		{"accurate", "slow", 4, 0, 30, 4, 0.75, "possible: 20.0 points more accurate, for 4.5 times"},
		{"quick", "slow", 4, 0, 6, 4, 0.15, "possible: a batch of 4 instead of 3, for 0.9 times"},
		{"quick", "slow", 1, 0, 3, 1, 0.3, "possible: a batch of 1 instead of 3, for 1.8 times"},
		{"accurate", "fast", 3, 20, 12.5, 2, 4.1667, "busy for 20 ms more: 1 of 3 queries would be late"},
		{"accurate", "fast", 4, 20, 15, 4, 3.75, "possible 20 ms later: 20.0 points more accurate, for 2.2 times"},
		{"quick", "fast", 3, 20, 2.5, 3, 0.83333, "not loaded"},
	}
	found := func(w *row) bool {
		for _, x := range c.Candidates {
			if x.Variant == w.variant && x.Kind == w.kind && x.Queries == w.queries {
				return x.WaitMS == w.wait && *x.RunMS == w.run && x.InTime == w.inTime &&
					*x.CostPerMillion == w.cost && strings.Contains(x.WhyNot, w.why) && x.Chosen == (w.why == "")
			}
		}
		return false
	}
	for k := range want {
		if !found(&want[k]) {
			t.Errorf("%+v is not among them", want[k])
		}
	}
	if t.Failed() || len(c.Candidates) != len(want) {
		for _, x := range c.Candidates {
			t.Logf("%s on %s: %d queries, %+v", x.Variant, x.Kind, x.Queries, x)
		}
		t.Errorf("%d candidates, want %d", len(c.Candidates), len(want))
	}
	if _, ok := b.Compare(7, nil); ok {
		t.Error("a batch that never was is compared")
	}
	seen, _ := learning.Compare(2, waiting)
	for _, x := range seen.Candidates {
		ran := x.Chosen || x.Variant == "accurate" && x.Kind == "fast" && x.Queries == 3
		if known := x.RunMS != nil; known != ran {
			t.Errorf("where latency is learned, only what ran has a time: %+v", x)
		}
	}
}
