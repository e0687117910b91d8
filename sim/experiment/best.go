package experiment

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/algo/poolsearch"
	"github.com/sluice-serving/sluice/planner/kairos"
)

// Evaluation finds what a pool carries, looking from a rate nearby: by simulation (Pools.Allowable), or on a real
// system.
type Evaluation func(ctx context.Context, pool kairos.Pool, start float64) (Allowed, error)

// Tried is a pool and what it was found to carry.
type Tried struct {
	kairos.Ranked
	Allowed
}

// Best finds the pool that carries most, of some with upper bounds, by KAIROS+ (Algorithm 1): all that is not tried
// cannot carry more, as far as the bounds hold and fewer machines of every type do not carry more. It returns the pools
// tried, in their order, and where the best is among them, -1 when nothing carries anything. Progress gets the part of
// the pools that is done with.
func Best(ctx context.Context, ranked []kairos.Ranked, evaluate Evaluation, progress func(share float64)) (
	tried []Tried, best int, err error) {
	points, bounds := make([][]int, len(ranked)), make([]float64, len(ranked))
	for i, r := range ranked {
		points[i], bounds[i] = r.Pool, r.Bound
	}
	space, err := poolsearch.NewSpace(points, poolsearch.PruneSubsets)
	if err != nil {
		return nil, -1, err
	}
	search, err := poolsearch.ByUpperBound(space, bounds)
	if err != nil {
		return nil, -1, err
	}
	best = -1
	for i, ok := search.Next(); ok; i, ok = search.Next() {
		a, err := evaluate(ctx, ranked[i].Pool, Start(ranked[i].Bound))
		if err != nil {
			return tried, best, err
		}
		tried = append(tried, Tried{ranked[i], a})
		if last := len(tried) - 1; a.Rate > 0 && (best < 0 || a.Rate > tried[best].Rate) {
			best = last
		}
		search.Tell(a.Rate)
		open, _, _ := space.Count()
		progress(1 - float64(open)/float64(len(ranked)))
	}
	return tried, best, nil
}

// Ahead is an evaluation that has begun already with the next pools when one is asked for, so many in the order given:
// for evaluations that wait on the real clock and leave the processor to others. What is never asked for was evaluated
// in vain; it ends with the context given here.
func Ahead(ctx context.Context, ranked []kairos.Ranked, evaluate Evaluation, many int) Evaluation {
	type call struct {
		done chan struct{}
		Allowed
		err error
	}
	place := make(map[string]int, len(ranked))
	for i, r := range ranked {
		place[fmt.Sprint(r.Pool)] = i
	}
	var begun []*call
	return func(asked context.Context, pool kairos.Pool, start float64) (Allowed, error) {
		at, ok := place[fmt.Sprint(pool)]
		if !ok {
			return evaluate(asked, pool, start)
		}
		for len(begun) < min(at+max(many, 1), len(ranked)) {
			c, r := &call{done: make(chan struct{})}, ranked[len(begun)]
			begun = append(begun, c)
			go func() {
				defer close(c.done)
				c.Allowed, c.err = evaluate(ctx, r.Pool, Start(r.Bound))
			}()
		}
		select {
		case <-asked.Done():
			return Allowed{}, asked.Err()
		case <-begun[at].done:
			return begun[at].Allowed, begun[at].err
		}
	}
}
