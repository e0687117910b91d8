package kairos

import (
	"context"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
	planner "github.com/sluice-serving/sluice/papers/kairos"
)

// searchRun is a run of a search among pools, which evaluates pools by measuring them coarsely.
type searchRun struct {
	pools []pool // in the order of their evaluation
	rates []float64
	space int // number of pools under the budget
}

// explore searches the best pool of a system, replacing tr.pool. limit bounds the evaluations, 0 is no bound. Pools
// within an evaluated one are pruned (§5.2).
func (run *runner) explore(ctx context.Context, tr trial, search searchMaker, budget float64, limit int,
	seed uint64) (*searchRun, error) {
	return run.exploreWith(ctx, tr, search, budget, limit, seed, seed)
}

// exploreWith is explore with a seed of its own for the search (chance). Measurements still use seed, so that searches
// with different chance share them.
func (run *runner) exploreWith(ctx context.Context, tr trial, search searchMaker, budget float64, limit int, seed,
	chance uint64) (*searchRun, error) {
	s, err := run.deployment(tr.setup)
	if err != nil {
		return nil, err
	}
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	points := make([][]int, len(ranked))
	for i, r := range ranked {
		points[i] = r.Pool
	}
	space, err := poolsearch.NewSpace(points, poolsearch.PruneSubsets)
	if err != nil {
		return nil, err
	}
	space.Limit = limit
	steps, err := search(space, s, rand.New(rand.NewPCG(chance, 0)))
	if err != nil {
		return nil, err
	}
	out := &searchRun{space: len(points)}
	for i, ok := steps.Next(); ok; i, ok = steps.Next() {
		tr.pool = pool(points[i])
		got, err := run.measure(ctx, tr, run.coarse, seed)
		if err != nil {
			return nil, err
		}
		out.pools, out.rates = append(out.pools, tr.pool), append(out.rates, got.Rate)
		steps.Tell(got.Rate)
	}
	return out, nil
}

// searchMaker returns a search among the pools of space.
type searchMaker func(space *poolsearch.Space, s *deployment, rng *rand.Rand) (*poolsearch.Search, error)

// upperBoundSearch is Algorithm 1 with the paper's bound.
func upperBoundSearch(space *poolsearch.Space, s *deployment, _ *rand.Rand) (*poolsearch.Search, error) {
	return boundedSearch(space, planner.NewUpper(s.market))
}

// fluidBoundSearch is Algorithm 1 with the bound of our linear program, which no schedule exceeds.
func fluidBoundSearch(space *poolsearch.Space, s *deployment, _ *rand.Rand) (*poolsearch.Search, error) {
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	return boundedSearch(space, f)
}

// algorithm1 is Algorithm 1 with either bound.
var algorithm1 = []namedSearch{{"kairos+", upperBoundSearch}, {"kairos+, linear program", fluidBoundSearch}}

// namedSearch is a search with its name in rows.
type namedSearch struct {
	name string
	make searchMaker
}

func boundedSearch(space *poolsearch.Space, b planner.Bound) (*poolsearch.Search, error) {
	bounds := make([]float64, len(space.Points()))
	for i, p := range space.Points() {
		bounds[i] = b.Of(p)
	}
	return poolsearch.ByUpperBound(space, bounds)
}

func random(space *poolsearch.Space, _ *deployment, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Random(space, rng), nil
}

func genetic(space *poolsearch.Space, _ *deployment, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Genetic(space, poolsearch.Evolution{}, rng), nil
}

func bayes(space *poolsearch.Space, _ *deployment, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Bayes(space, poolsearch.Surrogate{}, rng), nil
}

func annealing(space *poolsearch.Space, _ *deployment, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Annealing(space, poolsearch.Cooling{}, rng), nil
}

// best returns the index of the highest rate, the first of equal ones.
func (e *searchRun) best() int {
	best := 0
	for i, r := range e.rates {
		if r > e.rates[best] {
			best = i
		}
	}
	return best
}

// evaluationsUntil returns after how many evaluations a rate was reached; 0 when it was not.
func (e *searchRun) evaluationsUntil(rate float64) int {
	for i, r := range e.rates {
		if r >= rate {
			return i + 1
		}
	}
	return 0
}
