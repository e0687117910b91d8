package ramsis

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// runLive runs the job on the data plane and the real clock. Workers sleep for the profiled time of a batch. A client
// sends the arrivals of the simulation at their times.
func (j *job) runLive(ctx context.Context, s setup, seed uint64) (*result, error) {
	initial, err := j.plan(ctx)
	if err != nil {
		return nil, err
	}
	planner, err := j.System.NewPlanner(j.Env.Known())
	if err != nil {
		return nil, err
	}
	e, err := j.Engine(planner.Provides())
	if err != nil {
		return nil, err
	}
	_, m, err := newSpec(s)
	if err != nil {
		return nil, err
	}
	workers, err := fake.New(fake.Config{Latency: fake.Table(m, 0)})
	if err != nil {
		return nil, err
	}
	recorder := report.NewRecorder(j.Env.Apps, j.Record)
	over := &overshoot{expected: make(map[serving.BatchID]time.Duration)}
	if err := reproduce.RunLive(ctx, dataplane.Config{
		Spec: j.Env.Spec, Engine: e, Backend: func(serving.WorkerID) dataplane.Backend {
			return workers
		}, Initial: initial, Planner: planner,
		Outcome: func(o report.Outcome) { recorder.Add(&o) }, Observe: over.observe,
	}, j.load.source(seed)); err != nil {
		return nil, fmt.Errorf("%s, live: %w", j.System.Name, err)
	}
	all := recorder.Report(report.Meta{Name: j.System.Name, Seed: seed, Duration: j.load.span}).Overall
	out := &result{accuracy: math.NaN(), violations: 100 * all.ViolationRatio, queries: all.Offered, late: over.mean()}
	if all.SatisfiedAccuracy != nil {
		out.accuracy = 100 * *all.SatisfiedAccuracy
	}
	return out, nil
}

// overshoot is the time by which batches took longer than profiled, because workers wake up late.
type overshoot struct {
	expected map[serving.BatchID]time.Duration
	sum      time.Duration
	n        int
}

func (o *overshoot) observe(_ serving.Time, in []engine.Input, out []engine.Decision) {
	for k := range in {
		if want, ok := o.expected[in[k].Batch]; ok && in[k].Kind == engine.BatchDone {
			o.sum += in[k].Took - want
			o.n++
			delete(o.expected, in[k].Batch)
		}
	}
	for k := range out {
		if out[k].Kind == engine.StartBatch {
			o.expected[out[k].Batch] = out[k].Expected
		}
	}
}

func (o *overshoot) mean() time.Duration { return o.sum / time.Duration(max(o.n, 1)) }
