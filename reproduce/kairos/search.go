package kairos

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/algo/poolsearch"
	planner "github.com/sluice-serving/sluice/policy/plan/kairos"
)

// exploration is a search among pools that evaluates by measuring, coarsely.
type exploration struct {
	pools []pool // in the order in which they were evaluated
	rates []float64
	space int // pools under the budget
}

// explore searches for the best pool of a system; limit bounds the evaluations, 0 is no bound. Pools within one that was
// evaluated are pruned (§5.2). The pool of q does not matter.
func (l *lab) explore(ctx context.Context, q question, search searching, budget float64, limit int, seed uint64) (*exploration, error) {
	return l.exploring(ctx, q, search, budget, limit, math.Inf(1), seed, seed)
}

// exploreUntil searches until a pool carries a rate; chance is what the search draws by.
func (l *lab) exploreUntil(ctx context.Context, q question, search searching, rate float64, seed, chance uint64) (*exploration, error) {
	return l.exploring(ctx, q, search, budget, 0, rate, seed, chance)
}

func (l *lab) exploring(ctx context.Context, q question, search searching, budget float64, limit int, enough float64, seed, chance uint64) (*exploration, error) {
	s, err := l.service(q.setup)
	if err != nil {
		return nil, err
	}
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	points, bounds := make([][]int, len(ranked)), make([]float64, len(ranked))
	for i, r := range ranked {
		points[i], bounds[i] = r.Pool, r.Bound
	}
	space, err := poolsearch.NewSpace(points, poolsearch.Below)
	if err != nil {
		return nil, err
	}
	space.Limit = limit
	run, err := search(space, bounds, rand.New(rand.NewPCG(chance, 0)))
	if err != nil {
		return nil, err
	}
	out := &exploration{space: len(points)}
	for i, ok := run.Next(); ok; i, ok = run.Next() {
		q.pool = pool(points[i])
		got, err := l.measure(ctx, q, coarse, seed)
		if err != nil {
			return nil, err
		}
		out.pools, out.rates = append(out.pools, q.pool), append(out.rates, got.Rate)
		run.Tell(got.Rate)
		if got.Rate >= enough {
			break
		}
	}
	return out, nil
}

// searching makes a search of a space, for which the paper's upper bounds are known.
type searching func(space *poolsearch.Space, bounds []float64, rng *rand.Rand) (*poolsearch.Search, error)

// bounded is Algorithm 1.
func bounded(space *poolsearch.Space, bounds []float64, _ *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Bounded(space, bounds)
}

func random(space *poolsearch.Space, _ []float64, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Random(space, rng), nil
}

func genetic(space *poolsearch.Space, _ []float64, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Genetic(space, poolsearch.Evolution{}, rng), nil
}

func bayes(space *poolsearch.Space, _ []float64, rng *rand.Rand) (*poolsearch.Search, error) {
	return poolsearch.Bayes(space, poolsearch.Surrogate{}, rng), nil
}

func annealing(space *poolsearch.Space, _ []float64, rng *rand.Rand) (*poolsearch.Search, error) {
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
