package kairos

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// liveProbe is probe on the data plane: on the real clock, with workers that sleep for as long as simulated ones would
// take.
func (s *deployment) liveProbe(tr trial, g precision, giveUp float64) (experiment.Probe, error) {
	at, err := s.cases(tr)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, rate float64, seed uint64) (int, int, error) {
		constant, err := workload.Constant(rate)
		if err != nil {
			return 0, 0, err
		}
		c := at(constant)
		planner, err := c.System.NewPlanner(c.Env.Known())
		if err != nil {
			return 0, 0, err
		}
		e, err := c.Engine(planner.Provides())
		if err != nil {
			return 0, 0, err
		}
		machines, err := c.Env.Truth(workload.Rand(seed, "service"))
		if err != nil {
			return 0, 0, err
		}
		workers, err := sleepingWorkers(machines, len(machineTypes))
		if err != nil {
			return 0, 0, err
		}
		var violations atomic.Int64
		source := experiment.StopWhen(workload.Limit(c.Source(seed), serving.Never, int64(g.queries)), func() bool {
			return float64(violations.Load()) > giveUp*float64(g.queries)
		})
		err = reproduce.RunLive(ctx, dataplane.Config{
			Spec: c.Env.Spec, Engine: e, Initial: c.Initial, Planner: planner,
			Backend: func(w serving.WorkerID) dataplane.Backend { return workers[c.Env.Spec.Workers[w].DeviceType] },
			Outcome: func(o report.Outcome) {
				if experiment.Violated(&o) {
					violations.Add(1)
				}
			},
		}, source)
		return int(violations.Load()), g.queries, err
	}, nil
}

// sleepingWorkers returns workers, by DeviceTypeID, whose batches sleep for the times that machines draws.
func sleepingWorkers(machines truth.Model, n int) ([]dataplane.Backend, error) {
	var mu sync.Mutex // machines draw from one source of random numbers
	out := make([]dataplane.Backend, n)
	for d := range out {
		var err error
		if out[d], err = fake.New(fake.Config{Latency: func(v serving.VariantID, items int) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return truth.Sample(machines, v, serving.DeviceTypeID(d), items, 1)
		}}); err != nil {
			return nil, err
		}
	}
	return out, nil
}
