package planning

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/kairos"
)

// candidate is a pool and its simulated throughput, which is nil until it has been simulated.
type candidate struct {
	kairos.Ranked
	allowed *experiment.Throughput
}

// untried makes candidates of ranked pools.
func untried(ranked ...kairos.Ranked) []candidate {
	out := make([]candidate, len(ranked))
	for i, r := range ranked {
		out[i].Ranked = r
	}
	return out
}

// choiceProgress is the share of the progress for the choice of a pool; the remainder is for the other pools shown.
const choiceProgress = 0.7

// buy chooses the pool for a budget in $/h and describes it and others.
func (m *market) buy(ctx context.Context, budget float64, progress func(float64, string)) (*Budget, error) {
	pools, err := m.pools.Market.Pools(budget)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	out := &Budget{Budget: budget, Pools: len(pools)}
	var shown []candidate // the chosen one first
	if m.Demand > 0 {
		shown, out.Tried, err = m.cheapestPools(ctx, pools, progress)
	} else {
		shown, out.Tried, err = m.largestPool(ctx, pools, progress)
		out.Sure = m.Effort == UntilSure
	}
	if err != nil || len(shown) == 0 {
		return out, err
	}
	same, err := m.homogeneous(ctx, budget)
	if err != nil {
		return nil, err
	}
	if same != nil {
		shown = append(shown, candidate{Ranked: *same})
	}
	if m.Effort != NoPools {
		base := choiceProgress
		if out.Tried == 0 {
			base = 0
		}
		if err := m.simulate(ctx, shown, func(share float64) {
			progress(base+(1-base)*share, "simulating pools")
		}); err != nil {
			return nil, err
		}
	}
	views := make([]Pool, len(shown))
	for i := range views {
		views[i] = m.describe(&shown[i])
	}
	if same != nil {
		out.Homogeneous = &views[len(views)-1]
		if v := out.Homogeneous; m.Demand == 0 && v.Expected != nil && v.CostPerHour > 0 {
			scaled := *v.Expected * budget / v.CostPerHour
			out.Scaled = &scaled
		}
		views = views[:len(views)-1]
	}
	out.Chosen, out.RunnersUp = &views[0], views[1:]
	all := make([]*Pool, 0, len(shown))
	for i := range shown {
		if i < len(views) {
			all = append(all, &views[i])
		} else {
			all = append(all, out.Homogeneous)
		}
	}
	return out, m.bounded(ctx, out, shown, all)
}

// simulate computes the throughput of the candidates that were not simulated yet.
func (m *market) simulate(ctx context.Context, list []candidate, progress func(share float64)) error {
	return experiment.Sweep(ctx, len(list), runtime.NumCPU(), func(done, of int) {
		progress(float64(done) / float64(of))
	}, func(ctx context.Context, i int) error {
		c := &list[i]
		if c.allowed != nil {
			return nil
		}
		a, err := m.pools.Throughput(ctx, c.Pool, experiment.StartRate(m.upper.Of(c.Pool)))
		c.allowed = &a
		return err
	})
}

// cheapestPools returns the cheapest pools that carry the demand, and how many were simulated.
func (m *market) cheapestPools(ctx context.Context, pools []kairos.Pool,
	progress func(float64, string)) ([]candidate, int, error) {
	found, tried, err := m.pools.Cheapest(ctx, kairos.Rank(m.pools.Market, m.fluid, pools), m.Demand, 1+m.RunnersUp,
		func(done, of int) {
			progress(choiceProgress*(1-math.Pow(0.99, float64(done))),
				fmt.Sprintf("trying pools from the cheapest, %d of at most %d", done, of))
		})
	return untried(found...), tried, err
}

// largestPool returns the pool that carries most, by bounds or by a search, then those with the highest bounds. It
// returns none when no pool serves the largest queries. It also returns how many were simulated.
func (m *market) largestPool(ctx context.Context, pools []kairos.Pool, progress func(float64, string)) (
	shown []candidate, tried int, err error) {
	all, paper := m.pools.Market, m.Bound == PaperBound
	var by kairos.Bound = m.fluid
	if paper {
		by = m.upper
	}
	order := kairos.Rank(all, by, pools)
	if m.Bound == QueueEstimate {
		order = m.byEstimate(order)
	}
	ranked := untried(order...)
	if m.Effort == UntilSure {
		known, best, err := m.pools.Best(ctx, kairos.Rank(all, m.fluid, pools), func(share float64) {
			progress(choiceProgress*share, "looking for the best pool")
		})
		if err != nil || best < 0 {
			return nil, len(known), err
		}
		for i := range ranked {
			if at := slices.IndexFunc(known, func(t experiment.EvaluatedPool) bool {
				return slices.Equal(t.Pool, ranked[i].Pool)
			}); at >= 0 {
				ranked[i].allowed = &known[at].Throughput
			}
		}
		shown, tried = append(shown, candidate{known[best].Ranked, &known[best].Throughput}), len(known)
	} else {
		at := kairos.ChooseBySimilarity(all, order)
		switch {
		case at < 0:
			return nil, 0, nil
		case m.Bound == QueueEstimate && m.Effort != NoPools:
			if at, tried, err = m.tryFirst(ctx, ranked, progress); err != nil {
				return nil, tried, err
			}
		case !paper:
			at = 0 // as the planner does
		}
		shown = append(shown, ranked[at])
	}
	for _, c := range ranked {
		if len(shown) < 1+m.RunnersUp && c.Bound > 0 && !slices.Equal(c.Pool, shown[0].Pool) {
			shown = append(shown, c)
		}
	}
	return shown, tried, nil
}

// byEstimate returns the pools with the highest estimates, of pools ranked by the linear program: as many as are tried
// or shown.
func (m *market) byEstimate(ranked []kairos.Ranked) (out []kairos.Ranked) {
	for _, e := range m.queue.Highest(ranked, max(kairos.DefaultTrials, 1+m.RunnersUp)) {
		out = append(out, e.Ranked)
	}
	return out
}

// tryFirst simulates the first pools and returns the index of the one that carries most, and how many were simulated.
func (m *market) tryFirst(ctx context.Context, ranked []candidate, progress func(float64, string)) (best, tried int,
	err error) {
	first := ranked[:min(kairos.DefaultTrials, len(ranked))]
	if err := m.simulate(ctx, first, func(share float64) {
		progress(choiceProgress*share, "simulating pools")
	}); err != nil {
		return 0, 0, err
	}
	for i := range first {
		if first[i].allowed.Rate > first[best].allowed.Rate {
			best = i
		}
	}
	return best, len(first), nil
}

// homogeneous returns the pool of one base type that is compared with the chosen one. It is the one with the highest
// bound or, with a demand, the cheapest that carries it. It is nil when the budget buys none.
func (m *market) homogeneous(ctx context.Context, budget float64) (*kairos.Ranked, error) {
	all := m.pools.Market
	var best *kairos.Ranked
	for t := range all.Types {
		price := all.Types[t].Price
		if !all.IsBase(t) || price == 0 {
			continue
		}
		most := int(min(budget/price*(1+1e-9), 1e6))
		if limit := all.Types[t].Max; limit > 0 {
			most = min(most, limit)
		}
		of := func(n int) kairos.Ranked {
			p := make(kairos.Pool, len(all.Types))
			p[t] = n
			return kairos.Ranked{Pool: p, Bound: m.fluid.Of(p), Cost: all.Cost(p)}
		}
		n := most
		if m.Demand > 0 {
			var err error
			if n, err = m.fewestMachines(ctx, most, of); err != nil {
				return nil, err
			}
		}
		if n < 1 || n > most {
			continue
		}
		r := of(n)
		better := best == nil || r.Bound > best.Bound
		if m.Demand > 0 {
			better = best == nil || r.Cost < best.Cost
		}
		if better {
			best = &r
		}
	}
	return best, nil
}

// fewestMachines returns the least number of machines, at most most, whose pool carries the demand; most+1 when there
// is none. of returns the pool of a number.
func (m *market) fewestMachines(ctx context.Context, most int, of func(int) kairos.Ranked) (int, error) {
	var failed error
	n := 1 + sort.Search(most, func(n int) bool {
		r := of(n + 1)
		carried := r.Bound >= m.Demand
		if carried && failed == nil {
			carried, failed = m.pools.Carries(ctx, r.Pool, m.Demand)
		}
		return carried
	})
	return n, failed
}
