package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Pools evaluates pools of machines by simulation. A system serves one app with one variant, one instance on every
// machine. Queries arrive as a Poisson process.
type Pools struct {
	Env     *Environment // its workers are replaced by those of the pool
	System  systems.System
	Market  *kairos.Market
	Variant serving.VariantID
	// Queries is the number of queries in one run, 0 means 5,000. Runs is the most runs at one rate, 0 means 8.
	Queries, Runs int
	Resolution    float64 // of allowable throughputs, relative; 0 means 0.01
	NoBounds      bool    // as in ThroughputSearch
	Late          float64 // share of the queries that may miss the objective; 0 means what its percentile allows
	Seed          uint64
}

// giveUp is the multiple of the allowed violations at which a run ends early.
const giveUp = 10

func (p *Pools) app() *serving.App {
	spec := p.Env.Spec
	return &spec.Apps[spec.Stages[spec.Variants[p.Variant].Stage].App]
}

// search returns the options of a search that begins at start.
func (p *Pools) search(start float64) ThroughputSearch {
	return ThroughputSearch{
		Limit: cmp.Or(p.Late, p.app().SLO.Allowed()), Start: start, Resolution: p.Resolution, Runs: p.Runs,
		NoBounds: p.NoBounds, Seed: 1000 * p.Seed,
	}
}

// Probe returns a probe that runs the system on a pool.
func (p *Pools) Probe(pool kairos.Pool) (Probe, error) {
	env, initial, err := p.Env.OnPool(p.Market, pool, p.Variant, p.search(1).Limit)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.FromMix(p.Market.Mix)
	if err != nil {
		return nil, err
	}
	s := p.System
	s.Planner, s.Scaler = "static", "fixed" // the pool is given, nothing is planned
	template := workload.Arrival{
		App: env.Spec.Stages[env.Spec.Variants[p.Variant].Stage].App, Variant: serving.None, Sample: -1,
	}
	queries := cmp.Or(p.Queries, 5000)
	return ViolationProbe(func(rate *workload.Rate) *Case {
		return &Case{Env: env, System: s, Initial: initial, Source: func(seed uint64) workload.Source {
			return &workload.App{
				Times: workload.NewProcess(rate, workload.Poisson{}, workload.Rand(seed, "arrivals")),
				Sizes: sizes, SizeRand: workload.Rand(seed, "items"), Template: template,
			}
		}}
	}, queries, min(giveUp*p.search(1).Limit, 0.5)), nil
}

// Throughput finds the allowable throughput of a pool, beginning at the rate start. It is 0 for a pool without machines
// or a start that is not above 0.
func (p *Pools) Throughput(ctx context.Context, pool kairos.Pool, start float64) (Throughput, error) {
	if pool.Machines() == 0 || !(start > 0) {
		return Throughput{}, nil
	}
	probe, err := p.Probe(pool)
	if err != nil {
		return Throughput{}, err
	}
	out, err := FindThroughput(ctx, probe, p.search(start))
	if err != nil {
		return out, fmt.Errorf("pool %v: %w", pool, err)
	}
	return out, nil
}

// Carries reports whether a pool carries rate, in queries/s.
func (p *Pools) Carries(ctx context.Context, pool kairos.Pool, rate float64) (bool, error) {
	probe, err := p.Probe(pool)
	if err != nil {
		return false, err
	}
	carried, _, err := Carries(ctx, probe, p.search(rate))
	return carried, err
}

// Best is BestPool with simulations as evaluations.
func (p *Pools) Best(ctx context.Context, ranked []kairos.Ranked,
	progress func(share float64)) (evaluated []EvaluatedPool,
	best int, err error) {
	return BestPool(ctx, ranked, p.Throughput, progress)
}

// typicalShare is about the part of its bound that a pool carries. Searches begin there.
const typicalShare = 0.8

// StartRate returns a rate near the throughput of a pool with the given bound, both in queries/s.
func StartRate(bound float64) float64 { return typicalShare * bound }

// Cheapest returns the first n of ranked that carry rate, in queries/s, beginning with the cheapest. Pools whose bound
// is below rate are skipped. tried is the number of pools that were simulated. progress gets the number of pools tried
// so far and the most that there may be.
func (p *Pools) Cheapest(ctx context.Context, ranked []kairos.Ranked, rate float64, n int,
	progress func(done, of int)) (out []kairos.Ranked, tried int, err error) {
	var able []kairos.Ranked
	for _, r := range ranked {
		if r.Bound >= rate {
			able = append(able, r)
		}
	}
	slices.SortStableFunc(able, func(a, b kairos.Ranked) int { return cmp.Compare(a.Cost, b.Cost) })
	for _, r := range able {
		if len(out) == n {
			break
		}
		progress(tried, len(able))
		carried, err := p.Carries(ctx, r.Pool, rate)
		if err != nil {
			return out, tried, err
		}
		tried++
		if carried {
			out = append(out, r)
		}
	}
	return out, tried, nil
}
