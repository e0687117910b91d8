package kairos

import (
	"fmt"
	"strings"

	planner "github.com/sluice-serving/sluice/papers/kairos"
)

// pool has the number of machines of each of machineTypes.
type pool [4]int

// String writes the pool as the paper does.
func (p pool) String() string {
	return "(" + strings.ReplaceAll(strings.Trim(fmt.Sprint([4]int(p)), "[]"), " ", ",") + ")"
}

// counts returns the pool in the form of planners.
func (p pool) counts() planner.Pool { return p[:] }

// machines returns the number of machines of all types.
func (p pool) machines() (n int) {
	for _, k := range p {
		n += k
	}
	return n
}

// cost returns the price of the pool in $/h.
func (p pool) cost() (sum float64) {
	for t, n := range p {
		sum += float64(n) * machineTypes[t].PricePerHour
	}
	return sum
}

// homogeneous returns as many base machines as a budget in $/h pays.
func homogeneous(budget float64) pool { return pool{int(budget / machineTypes[0].PricePerHour)} }

// ranked returns the pools under a budget whose bound is above 0, by falling bound.
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

// fluid returns the bound of our linear program, which no schedule exceeds.
func (s *deployment) fluid() (*planner.Fluid, error) {
	return planner.NewFluid(s.market, violationLimit)
}

// oraclePools has the throughput of the oracle on every pool under the budget, for a sequence of queries whose sizes
// are the quantiles of the mix.
type oraclePools struct {
	rates map[pool]float64
	best  pool
}

// newOracle returns the oracle of §7.
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
