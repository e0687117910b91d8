package kairos

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// trial is one measurement of throughput: of a system on a pool under a load.
type trial struct {
	setup
	pool     pool
	system   string
	arrivals arrivals
	// threshold of a rule that has one; 0 has the best one searched
	threshold int
}

func (tr trial) String() string {
	return fmt.Sprintf("%s of %s on %v, %v, sizes %v, QoS x %v, noise %v", tr.system, tr.model, tr.pool, tr.arrivals,
		tr.sizes, tr.qos, tr.noise)
}

// precision is how exactly throughput is measured.
type precision struct {
	queries    int // of one run
	runs       int // at one rate, at most
	resolution float64
	rough      bool // without bounds
}

func (g precision) String() string { return fmt.Sprintf("%d x %d queries", g.runs, g.queries) }

// trialKey identifies a measurement, which is made once.
type trialKey struct {
	trial
	precision
	seed uint64
}

// measure finds the allowable throughput of a trial with a seed. Calls with equal arguments share one measurement.
func (run *runner) measure(ctx context.Context, tr trial, g precision, seed uint64) (experiment.Throughput, error) {
	return run.throughputs.Get(trialKey{tr, g, seed}, func() (experiment.Throughput, error) {
		return run.findThroughput(ctx, tr, g, seed)
	})
}

func (run *runner) findThroughput(ctx context.Context, tr trial, g precision, seed uint64) (experiment.Throughput,
	error) {
	s, err := run.deployment(tr.setup)
	if err != nil {
		return experiment.Throughput{}, err
	}
	f, err := s.fluid()
	if err != nil {
		return experiment.Throughput{}, err
	}
	bound := f.Of(tr.pool.counts())
	if bound == 0 {
		return experiment.Throughput{}, nil
	}
	if thresholdRules[tr.system] != nil && tr.threshold == 0 {
		return run.tuneThreshold(ctx, s, tr, g, seed)
	}
	p, err := s.probe(tr, g, giveUpShare)
	if err != nil {
		return experiment.Throughput{}, err
	}
	// Good systems carry about four fifths of the bound. The search reaches others from there.
	out, err := experiment.FindThroughput(ctx, p, g.search(0.8*bound, seed))
	if err != nil {
		err = fmt.Errorf("%v: %w", tr, err)
	}
	return out, err
}

// search returns the options of a search that begins at start, in queries/s.
func (g precision) search(start float64, seed uint64) experiment.ThroughputSearch {
	return experiment.ThroughputSearch{
		Limit: violationLimit, Start: start, Resolution: g.resolution, Runs: g.runs, NoBounds: g.rough,
		Seed: seed * 1000,
	}
}

const (
	// violationLimit is the share of the queries that may miss the QoS target, which is a 99th percentile (§7).
	violationLimit = 0.01
	// giveUpShare is the share of violations at which a run ends, because its rate is far too high.
	giveUpShare = 0.1
)

// probe returns a probe that simulates a trial. Runs end at the share giveUp of violations; 0 never ends one.
func (s *deployment) probe(tr trial, g precision, giveUp float64) (experiment.Probe, error) {
	at, err := s.cases(tr)
	if err != nil {
		return nil, err
	}
	probe := experiment.ViolationProbe(at, g.queries, giveUp)
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	// The few queries of a coarse run fit into batches at any rate. No batch makes up for this many times the bound.
	most := beyondBound * f.Of(tr.pool.counts())
	return func(ctx context.Context, rate float64, seed uint64) (violations, queries int, err error) {
		if rate > most {
			return g.queries, g.queries, nil
		}
		return probe(ctx, rate, seed)
	}, nil
}

// beyondBound is the multiple of the bound on single queries beyond which nothing is carried.
const beyondBound = 20

// cases returns the case of a trial at any rate, in queries/s.
func (s *deployment) cases(tr trial) (func(rate *workload.Rate) *experiment.Case, error) {
	w, initial, err := s.onPool(tr.pool)
	if err != nil {
		return nil, err
	}
	drawn, err := workload.FromMix(s.spec.Apps[0].Mix)
	if err != nil {
		return nil, err
	}
	system := reproduce.System(tr.system)
	if system.Planner == ownPlanner {
		w.Beliefs = s.careful
	}
	system.Planner, system.Scaler = "static", "fixed" // the pool is given, nothing is planned
	if set := thresholdRules[tr.system]; set != nil {
		set(&system.Options, tr.threshold)
	}
	return func(rate *workload.Rate) *experiment.Case {
		return &experiment.Case{Env: w, System: system, Initial: initial, Source: func(seed uint64) workload.Source {
			return tr.arrivals.source(rate, drawn, seed)
		}}
	}, nil
}
