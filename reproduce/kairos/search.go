package kairos

import (
	"context"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/algo/poolsearch"
	planner "github.com/sluice-serving/sluice/planner/kairos"
)

// exploration is a search among pools that evaluates by measuring, coarsely.
type exploration struct {
	pools []pool // in the order in which they were evaluated
	rates []float64
	space int // pools under the budget
}

// explore searches for the best pool of a system; limit bounds the evaluations, 0 is no bound. Pools within one that
// was evaluated are pruned (§5.2). The pool of q does not matter.
func (l *lab) explore(ctx context.Context, q question, search searching, budget float64, limit int,
	seed uint64) (*exploration, error) {
	return l.exploring(ctx, q, search, budget, limit, seed, seed)
}

// exploring is explore with another number that the search draws by: what is measured stays the same.
func (l *lab) exploring(ctx context.Context, q question, search searching, budget float64, limit int, seed,
	chance uint64) (*exploration, error) {
	s, err := l.service(q.setup)
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
	run, err := search(space, s, rand.New(rand.NewPCG(chance, 0)))
	if err != nil {
		return nil, err
	}
	out := &exploration{space: len(points)}
	for i, ok := run.Next(); ok; i, ok = run.Next() {
		q.pool = pool(points[i])
		got, err := l.measure(ctx, q, l.coarse, seed)
		if err != nil {
			return nil, err
		}
		out.pools, out.rates = append(out.pools, q.pool), append(out.rates, got.Rate)
		run.Tell(got.Rate)
	}
	return out, nil
}

// searching makes a search among pools for a service.
type searching func(space *poolsearch.Space, s *service, rng *rand.Rand) (*poolsearch.Search, error)

// bounded is Algorithm 1 with the paper's bound.
func bounded(space *poolsearch.Space, s *service, _ *rand.Rand) (*poolsearch.Search, error) {
	return under(space, planner.NewUpper(s.market))
}

// boundedByProgram is Algorithm 1 with our linear program's bound, which no schedule passes.
func boundedByProgram(space *poolsearch.Space, s *service, _ *rand.Rand) (*poolsearch.Search, error) {
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	return under(space, f)
}

// algorithm1 is Algorithm 1 with either bound.
var algorithm1 = []searcher{{"kairos+", bounded}, {"kairos+, linear program", boundedByProgram}}

// searcher is a search with its name.
type searcher struct {
	name string
	make searching
}

func under(space *poolsearch.Space, b planner.Bound) (*poolsearch.Search, error) {
	bounds := make([]float64, len(space.Points()))
	for i, p := range space.Points() {
		bounds[i] = b.Of(p)
	}
	return poolsearch.ByUpperBound(space, bounds)
}

func random(space *poolsearch.Space, _ *service, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Random(space, rng), nil
}

func genetic(space *poolsearch.Space, _ *service, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Genetic(space, poolsearch.Evolution{}, rng), nil
}

func bayes(space *poolsearch.Space, _ *service, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Bayes(space, poolsearch.Surrogate{}, rng), nil
}

func annealing(space *poolsearch.Space, _ *service, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Annealing(space, poolsearch.Cooling{}, rng), nil
}

// top is the place of the highest rate, the first of equal ones.
func (e *exploration) top() int {
	best := 0
	for i, r := range e.rates {
		if r > e.rates[best] {
			best = i
		}
	}
	return best
}

// until is after how many evaluations a rate was reached; 0 when it was not.
func (e *exploration) until(rate float64) int {
	for i, r := range e.rates {
		if r >= rate {
			return i + 1
		}
	}
	return 0
}
