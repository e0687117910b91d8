package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/systems"
)

// Pools tries pools of machines: a system serves one app with one variant, every machine by itself, and queries arrive
// as a Poisson process.
type Pools struct {
	Env     *Environment // its workers do not count
	System  systems.System
	Market  *kairos.Market
	Variant serving.VariantID
	// Queries of one run, and the most runs at one rate; 0 means 5,000 and 8.
	Queries, Runs int
	Resolution    float64 // of allowable throughputs, relative; 0 means 1 %
	Seed          uint64
}

// giveUp ends a run that has many times the violations that are allowed.
const giveUp = 10

func (p *Pools) app() *serving.App {
	spec := p.Env.Spec
	return &spec.Apps[spec.Stages[spec.Variants[p.Variant].Stage].App]
}

// search is how rates from start are looked at.
func (p *Pools) search(start float64) ThroughputSearch {
	return ThroughputSearch{
		Limit: 1 - p.app().SLO.Percentile/100, Start: start, Resolution: p.Resolution, Runs: p.Runs,
		Seed: 1000 * p.Seed,
	}
}

// Probe runs the system on a pool.
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
	s.Planner, s.Scaler = "static", "fixed" // the pool is given
	template := workload.Arrival{
		App: env.Spec.Stages[env.Spec.Variants[p.Variant].Stage].App, Variant: serving.None, Sample: -1,
	}
	queries := cmp.Or(p.Queries, 5000)
	return ViolationProbe(func(rate float64) *Case {
		return &Case{Env: env, System: s, Initial: initial, Source: func(seed uint64) workload.Source {
			return &workload.App{
				Times: workload.NewProcess(workload.Constant(rate), workload.Poisson{},
					workload.Rand(seed, "arrivals")),
				Sizes: sizes, SizeRand: workload.Rand(seed, "items"), Template: template,
			}
		}}
	}, queries, min(giveUp*p.search(1).Limit, 0.5)), nil
}

// Throughput finds what a pool carries, looking from a rate nearby; nothing where it has no machine.
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

// Carries tells whether a pool carries a rate, in queries/s.
func (p *Pools) Carries(ctx context.Context, pool kairos.Pool, rate float64) (bool, error) {
	probe, err := p.Probe(pool)
	if err != nil {
		return false, err
	}
	carried, _, err := Carries(ctx, probe, p.search(rate))
	return carried, err
}

// Best is the package's, by simulation.
func (p *Pools) Best(ctx context.Context, ranked []kairos.Ranked, progress func(share float64)) (evaluated []EvaluatedPool,
	best int, err error) {
	return BestPool(ctx, ranked, p.Throughput, progress)
}

// typicalShare is about which part of its bound a pool carries: where a search for what it does begins.
const typicalShare = 0.8

// StartRate is a rate near what a pool of a bound carries, to look from.
func StartRate(bound float64) float64 { return typicalShare * bound }

// Cheapest finds the first n pools, from the cheapest, that carry a rate, of some with upper bounds: those whose bound
// is below it are not tried. It also returns how many were. Progress gets how many have been and how many there are.
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
