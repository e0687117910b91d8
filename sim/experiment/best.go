package experiment

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/algo/poolsearch"
	"github.com/sluice-serving/sluice/planner/kairos"
)

// Evaluate finds what a pool carries, looking from a rate nearby: by simulation (Pools.Allowable), or on a real
// system.
type Evaluate func(ctx context.Context, pool kairos.Pool, start float64) (Throughput, error)

// EvaluatedPool is a pool and what it was found to carry.
type EvaluatedPool struct {
	kairos.Ranked
	Throughput
}

// BestPool finds the pool that carries most, of some with upper bounds, by KAIROS+ (Algorithm 1): all that is not tried
// cannot carry more, as far as the bounds hold and fewer machines of every type do not carry more. It returns the pools
// tried, in their order, and where the best is among them, -1 when nothing carries anything. Progress gets the part of
// the pools that is done with.
func BestPool(ctx context.Context, ranked []kairos.Ranked, evaluate Evaluate, progress func(share float64)) (
	evaluated []EvaluatedPool, best int, err error) {
	points, bounds := make([][]int, len(ranked)), make([]float64, len(ranked))
	for i, r := range ranked {
		points[i], bounds[i] = r.Pool, r.Bound
	}
	space, err := poolsearch.NewSpace(points, poolsearch.Below)
	if err != nil {
		return nil, -1, err
	}
	search, err := poolsearch.Bounded(space, bounds)
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

// EvaluateAhead is an evaluation that has begun already with the next pools when one is asked for, so many in the order given:
// for evaluations that wait on the real clock and leave the processor to others. What is never asked for was evaluated
// in vain; it ends with the context given here.
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
