package kairos

import (
	"context"
	"fmt"
	"slices"

	planner "github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
)

// found is the best pool for a system, as somebody who may try all of them finds it.
type found struct {
	pool pool
	experiment.Allowed
	tried, pools int // how many were run at all, and how many there are
}

// crowded are the rules under which a machine more may do harm: it takes queries that it cannot serve in time. Under
// the others no pool is tried that lies within one that was (§5.2).
var crowded = map[string]bool{"fcfs": true}

// best finds the best pool for a system: in the order of our bound, a pool is measured when it carries a little more
// than the best so far, and no pool is run whose bound is not above that.
func (l *lab) best(ctx context.Context, q question, budget float64, g grain, seed uint64) (*found, error) {
	s, err := l.service(q.setup)
	if err != nil {
		return nil, err
	}
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	ranked, err := s.ranked(f, budget)
	if err != nil {
		return nil, err
	}
	out := &found{pools: len(ranked)}
	var tried []planner.Pool
	for _, r := range ranked {
		ahead := out.Rate * (1 + g.resolution/2)
		if r.Bound <= ahead {
			break
		}
		if !crowded[q.system] && slices.ContainsFunc(tried, r.Pool.SubsetOf) {
			continue
		}
		tried = append(tried, r.Pool)
		q.pool = pool(r.Pool)
		out.tried++
		if ahead > 0 {
			at := q
			if tuned[q.system] != nil {
				if at, err = s.fewest(ctx, q, g, ahead, seed); err != nil {
					return nil, err
				}
			}
			p, err := s.probe(at, g, giveUp)
			if err != nil {
				return nil, err
			}
			carried, _, err := experiment.Carries(ctx, p, g.allowing(ahead, seed))
			if err != nil {
				return nil, err
			}
			if !carried {
				continue
			}
		}
		got, err := l.measure(ctx, q, g, seed)
		if err != nil {
			return nil, err
		}
		if got.Rate > out.Rate {
			out.pool, out.Allowed = q.pool, got
		}
	}
	return out, nil
}

// wantBest has the best pool found with every seed; the pool of q does not matter.
func (l *lab) wantBest(q question, budget float64, g grain) *reproduce.Task {
	q.pool = pool{}
	return l.Do(fmt.Sprintf("best pool for %v under %v $/h", q, budget), 40*g.queries*g.runs, l.Seeds,
		func(ctx context.Context, seed uint64) (any, error) {
			return l.best(ctx, q, budget, g, seed)
		})
}
