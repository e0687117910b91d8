package experiment

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
	"github.com/sluice-serving/sluice/papers/kairos"
)

// Evaluate returns the allowable throughput of a pool. start is a rate nearby, in queries/s, to begin the search from.
// Pools.Throughput evaluates by simulation; others use a running system.
type Evaluate func(ctx context.Context, pool kairos.Pool, start float64) (Throughput, error)

// EvaluatedPool is a pool with its bound and the throughput that was found for it.
type EvaluatedPool struct {
	kairos.Ranked
	Throughput
}

// BestPool searches for the pool with the highest throughput by KAIROS+ (Kairos, Algorithm 1). ranked are the pools
// with upper bounds of their throughput. Pools that are not evaluated cannot be better, provided that the bounds hold
// and that removing machines never helps. It returns the evaluated pools in the order of their evaluation, and the
// index of the best one among them, -1 when none carries anything. progress gets the share of the pools that are
// evaluated or ruled out.
func BestPool(ctx context.Context, ranked []kairos.Ranked, evaluate Evaluate, progress func(share float64)) (
	evaluated []EvaluatedPool, best int, err error) {
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
		a, err := evaluate(ctx, ranked[i].Pool, StartRate(ranked[i].Bound))
		if err != nil {
			return evaluated, best, err
		}
		evaluated = append(evaluated, EvaluatedPool{ranked[i], a})
		if last := len(evaluated) - 1; a.Rate > 0 && (best < 0 || a.Rate > evaluated[best].Rate) {
			best = last
		}
		search.Tell(a.Rate)
		open, _, _ := space.Count()
		progress(1 - float64(open)/float64(len(ranked)))
	}
	return evaluated, best, nil
}

// EvaluateAhead returns an Evaluate that starts up to many evaluations before they are asked for, in the order of
// ranked. It suits evaluations that wait on the real clock and leave the processor idle. Evaluations run with ctx.
// Those that are never asked for are wasted.
func EvaluateAhead(ctx context.Context, ranked []kairos.Ranked, evaluate Evaluate, many int) Evaluate {
	type call struct {
		done chan struct{}
		Throughput
		err error
	}
	place := make(map[string]int, len(ranked))
	for i, r := range ranked {
		place[fmt.Sprint(r.Pool)] = i
	}
	var begun []*call
	return func(asked context.Context, pool kairos.Pool, start float64) (Throughput, error) {
		at, ok := place[fmt.Sprint(pool)]
		if !ok {
			return evaluate(asked, pool, start)
		}
		for len(begun) < min(at+max(many, 1), len(ranked)) {
			c, r := &call{done: make(chan struct{})}, ranked[len(begun)]
			begun = append(begun, c)
			go func() {
				defer close(c.done)
				c.Throughput, c.err = evaluate(ctx, r.Pool, StartRate(r.Bound))
			}()
		}
		select {
		case <-asked.Done():
			return Throughput{}, asked.Err()
		case <-begun[at].done:
			return begun[at].Throughput, begun[at].err
		}
	}
}
