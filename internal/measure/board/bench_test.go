package board

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// BenchmarkQuery is what the board and its log cost for each query, in batches of four, each in steps of its own: an
// arrival, the start and the end of a batch, and the end of the query.
func BenchmarkQuery(b *testing.B) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{{Name: "app", Stages: []serving.StageID{0},
			SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", MaxBatch: 8}},
	}
	log := steps.New(spec, steps.Options{})
	New(spec, log, Options{Arrivals: 1 << 16})
	log.Observe(0, nil, []engine.Decision{{Kind: engine.LaunchInstance, Instance: 1,
		Launch: &engine.Launch{Slots: 1, Variants: []serving.VariantID{0}}}})
	log.Observe(0, []engine.Input{engine.NewVariantReady(1, 0)}, nil)
	const size = 4
	arrive := make([]engine.Input, 1)
	start := []engine.Decision{{Kind: engine.StartBatch, Instance: 1, Items: size, Tasks: make([]engine.Task, size)}}
	done := make([]engine.Input, 1)
	ended := make([]engine.Decision, size)
	now, batch := serving.Time(0), serving.BatchID(0)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N / size {
		for range size {
			now += 50_000
			arrive[0] = engine.NewQueryArrived(serving.Query{Arrived: now, Items: 1})
			log.Observe(now, arrive, nil)
		}
		batch++
		start[0].Batch = batch
		log.Observe(now, nil, start)
		done[0] = engine.NewBatchDone(batch, 1, time.Millisecond, nil)
		for k := range ended {
			ended[k] = engine.Decision{Kind: engine.EndQuery, Arrived: now - 1e6, Accuracy: 0.9}
		}
		log.Observe(now, done, ended)
	}
}
