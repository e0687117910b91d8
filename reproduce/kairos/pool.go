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

// of is the pool as planners have it.
func (p pool) of() planner.Pool { return p[:] }

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
		sum += float64(n) * types[t].PricePerHour
	}
	return sum
}

// homogeneous is as many base machines as a budget pays.
func homogeneous(budget float64) pool { return pool{int(budget / types[0].PricePerHour)} }

// ranked are all pools under a budget that serve any queries, those with the highest bound first.
func (s *service) ranked(b planner.Bound, budget float64) ([]planner.Ranked, error) {
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
func (s *service) fluid() (*planner.Fluid, error) { return planner.NewFluid(s.market, outside) }

// oracular is what the oracle carries on every pool under the budget, on a sequence of queries that has the mix as its
// quantiles.
type oracular struct {
	rates map[pool]float64
	best  pool
}

// orcl is the oracle of §7.
func (s *service) orcl() *planner.Oracle {
	return planner.NewOracle(s.market, s.market.Quantiles(20_000))
}

func (s *service) findOracle() (*oracular, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	o := s.orcl()
	out := &oracular{rates: make(map[pool]float64)}
	for _, r := range ranked {
		p := pool(r.Pool)
		out.rates[p] = o.Of(r.Pool)
		if out.rates[p] > out.rates[out.best] {
			out.best = p
		}
	}
	return out, nil
}
