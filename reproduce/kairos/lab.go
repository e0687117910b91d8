package kairos

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
	"github.com/sluice-serving/sluice/workload"
)

// job is a system on a pool under a load.
type job struct {
	*service
	pool     pool
	system   systems.System
	arrivals arrivals
	queries  int // of one run
}

// probe runs the job at a rate.
func (j *job) probe() (experiment.Probe, error) {
	w, initial, err := j.world(j.pool)
	if err != nil {
		return nil, err
	}
	drawn, err := workload.FromMix(j.spec.Apps[0].Mix)
	if err != nil {
		return nil, err
	}
	s := j.system
	s.Planner, s.Scaler = "static", "fixed" // the pool is given
	return experiment.Violating(func(rate float64) *experiment.Case {
		return &experiment.Case{World: w, System: s, Initial: initial, Source: func(seed uint64) workload.Source { return j.arrivals.source(rate, drawn, seed) }}
	}, j.queries, giveUp), nil
}

const (
	// outside is the share of the queries that may be outside QoS: it is a 99th percentile (§7).
	outside = 0.01
	// giveUp is the share beyond which a run ends: the rate is far too high.
	giveUp = 0.1
)

// allowable finds the job's allowable throughput from a rate nearby.
func (j *job) allowable(ctx context.Context, start, resolution float64, runs int, seed uint64) (experiment.Allowed, error) {
	p, err := j.probe()
	if err != nil {
		return experiment.Allowed{}, err
	}
	out, err := experiment.Allowable(ctx, p, experiment.Allowing{Limit: outside, Start: start, Resolution: resolution, Runs: runs, Seed: seed * 1000})
	if err != nil {
		return out, fmt.Errorf("%s of %s on %v: %w", j.system.Name, j.model, j.pool, err)
	}
	return out, nil
}

// lab is where figures say what they want.
type lab struct {
	*reproduce.Lab
	services map[setup]*service
}
