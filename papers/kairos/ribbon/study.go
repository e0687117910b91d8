package ribbon

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
)

// Searches are the names that Study accepts: Ribbon's own search first, then those that Kairos compares with (§8.3).
var Searches = []string{"bayes", "random", "genetic", "annealing"}

// Pruning says which pools a good pool rules out. With ByPrice and ByPool, a pool that is not good rules out the pools
// within it.
type Pruning string

// The kinds of pruning.
const (
	// ByPrice rules out all pools that do not cost less than a good one. Ribbon keeps those of the same price, which
	// cannot be better.
	ByPrice Pruning = "price"
	// ByPool rules out all pools that contain a good one, which needs no prices. The authors' random search does so,
	// but only for pools with more machines of every type.
	ByPool Pruning = "pool"
	// None rules out nothing.
	None Pruning = "none"
)

// Result is the result of a search on a table, by seed.
type Result struct {
	Model   string
	Search  string
	Pruning Pruning
	// Best is the number of evaluations until the cheapest good pool, random starts included; 0 where the search ended
	// without it. Savings has the same for each of the table's savings, then by seed.
	Best    []int
	Savings [][]int
	// Failing is the number of evaluated pools that were not good. In production their queries would be late.
	Failing []int
	// Lost counts the seeds in which the cheapest good pool was pruned. This happens where a pool with more slow
	// machines serves fewer queries in time, because they take queries that a faster machine would have served.
	Lost int
}

// Study runs a search with the seeds 0 to seeds-1. A run ends when the cheapest good pool is found or limit pools are
// evaluated. search is one of Searches. The authors run 100 seeds with a limit of 200, and do not count the two random
// starts of their own search. It returns an error for a search or a pruning that does not exist.
func Study(t *Table, search string, pruning Pruning, seeds, limit int) (*Result, error) {
	out := &Result{
		Model: t.Model, Search: search, Pruning: pruning, Best: make([]int, seeds), Failing: make([]int, seeds),
	}
	for range t.Savings {
		out.Savings = append(out.Savings, make([]int, seeds))
	}
	best := t.Best()
	rule, err := t.rule(pruning)
	if err != nil {
		return nil, err
	}
	for seed := range seeds {
		space, err := poolsearch.NewSpace(t.Pools, rule)
		if err != nil {
			return nil, err
		}
		space.Limit = limit
		s, err := start(search, space, rand.New(rand.NewPCG(uint64(seed), 0)))
		if err != nil {
			return nil, err
		}
		for n := 1; out.Best[seed] == 0; n++ {
			pool, ok := s.Next()
			if !ok {
				break
			}
			s.Tell(t.Score(pool))
			if !t.Good(pool) {
				out.Failing[seed]++
			}
			for k, saving := range t.Savings {
				if out.Savings[k][seed] == 0 && t.reaches(pool, saving) {
					out.Savings[k][seed] = n
				}
			}
			if pool == best {
				out.Best[seed] = n
			}
		}
		if out.Best[seed] == 0 && !space.Open(best) {
			out.Lost++
		}
	}
	return out, nil
}

func start(search string, space *poolsearch.Space, rng *rand.Rand) (*poolsearch.Search, error) {
	switch search {
	case "bayes":
		return poolsearch.Bayes(space, poolsearch.Surrogate{Starts: 2, Margin: 0.1}, rng), nil
	case "random":
		return poolsearch.Random(space, rng), nil
	case "genetic":
		return poolsearch.Genetic(space, poolsearch.Evolution{}, rng), nil
	case "annealing":
		return poolsearch.Annealing(space, poolsearch.Cooling{}, rng), nil
	}
	return nil, fmt.Errorf("ribbon: no search %q: take one of %v", search, Searches)
}

func (t *Table) rule(pruning Pruning) (poolsearch.PruneRule, error) {
	var good func(s *poolsearch.Space, pool int)
	switch pruning {
	case None:
		return nil, nil
	case ByPool:
		good = (*poolsearch.Space).PruneAbove
	case ByPrice:
		good = func(s *poolsearch.Space, pool int) {
			for i, price := range t.Price {
				if price >= t.Price[pool] {
					s.Prune(i)
				}
			}
		}
	default:
		return nil, fmt.Errorf("ribbon: no pruning %q: take %q, %q or %q", pruning, ByPrice, ByPool, None)
	}
	return func(s *poolsearch.Space, pool int, _ float64) {
		if t.Good(pool) {
			good(s, pool)
		} else {
			s.PruneBelow(pool)
		}
	}, nil
}

// Summary summarises the numbers of evaluations of all seeds. found is how many are not 0. mean and median are of those
// alone, as the authors compute them; 0 when there are none.
func Summary(evaluations []int) (found int, mean, median float64) {
	ends := slices.DeleteFunc(slices.Sorted(slices.Values(evaluations)), func(n int) bool { return n == 0 })
	if found = len(ends); found == 0 {
		return 0, 0, 0
	}
	for _, n := range ends {
		mean += float64(n) / float64(found)
	}
	return found, mean, float64(ends[(found-1)/2]+ends[found/2]) / 2
}
