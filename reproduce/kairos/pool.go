package kairos

import (
	"fmt"
	"strings"

	planner "github.com/sluice-serving/sluice/planner/kairos"
)

// pool is how many machines there are of each type.
type pool [4]int

// String writes the pool as the paper does.
func (p pool) String() string {
	return "(" + strings.ReplaceAll(strings.Trim(fmt.Sprint([4]int(p)), "[]"), " ", ",") + ")"
}

// counts is the pool as planners have it.
func (p pool) counts() planner.Pool { return p[:] }

// machines is how many there are of all types.
func (p pool) machines() (n int) {
	for _, k := range p {
		n += k
	}
	return n
}

// cost in $/h.
func (p pool) cost() (sum float64) {
	for t, n := range p {
		sum += float64(n) * machineTypes[t].PricePerHour
	}
	return sum
}

// homogeneous is as many base machines as a budget pays.
func homogeneous(budget float64) pool { return pool{int(budget / machineTypes[0].PricePerHour)} }

// ranked are all pools under a budget that serve any queries, those with the highest bound first.
func (s *deployment) ranked(b planner.Bound, budget float64) ([]planner.Ranked, error) {
	all, err := s.market.Pools(budget)
	if err != nil {
		return nil, err
	}
	out := planner.Rank(s.market, b, all)
	for len(out) > 0 && out[len(out)-1].Bound <= 0 {
		out = out[:len(out)-1]
	}
	return out, nil
}

// fluid is our bound, which nothing passes.
func (s *deployment) fluid() (*planner.Fluid, error) {
	return planner.NewFluid(s.market, violationLimit)
}

// oraclePools is what the oracle carries on every pool under the budget, on a sequence of queries that has the mix as its
// quantiles.
type oraclePools struct {
	rates map[pool]float64
	best  pool
}

// newOracle is the oracle of §7.
func (s *deployment) newOracle() *planner.Oracle {
	return planner.NewOracle(s.market, s.market.Quantiles(20_000))
}

func (s *deployment) findOracle() (*oraclePools, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	o := s.newOracle()
	out := &oraclePools{rates: make(map[pool]float64)}
	for _, r := range ranked {
		p := pool(r.Pool)
		out.rates[p] = o.Of(r.Pool)
		if out.rates[p] > out.rates[out.best] {
			out.best = p
		}
	}
	return out, nil
}
