package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// nonMonotone are the rules under which one machine more may lower the throughput, because it takes queries that it
// cannot serve in time. Under the other rules a pool within an evaluated one is not evaluated (§5.2).
var nonMonotone = map[string]bool{"fcfs": true}

// findBest finds the best pool for a system by measuring pools (§8.2 gives the rules other than Kairos theirs). It goes
// through the pools by falling bound of the linear program. A pool is measured only when it carries a little more than
// the best so far. The search ends at the first bound that is not higher.
func (run *runner) findBest(ctx context.Context, tr trial, budget float64, g precision, seed uint64) (out measured,
	err error) {
	s, err := run.deployment(tr.setup)
	if err != nil {
		return out, err
	}
	f, err := s.fluid()
	if err != nil {
		return out, err
	}
	ranked, err := s.ranked(f, budget)
	if err != nil {
		return out, err
	}
	var evaluated []planner.Pool
	for _, r := range ranked {
		ahead := out.Rate * (1 + g.resolution/2)
		if r.Bound <= ahead {
			break
		}
		if !nonMonotone[tr.system] && slices.ContainsFunc(evaluated, r.Pool.SubsetOf) {
			continue
		}
		evaluated = append(evaluated, r.Pool)
		tr.pool = pool(r.Pool)
		if ahead > 0 {
			at := tr
			if thresholdRules[tr.system] != nil {
				if at, err = s.fewestViolations(ctx, tr, g, ahead, seed); err != nil {
					return out, err
				}
			}
			p, err := s.probe(at, g, giveUpShare)
			if err != nil {
				return out, err
			}
			carried, _, err := experiment.Carries(ctx, p, g.search(ahead, seed))
			if err != nil {
				return out, err
			}
			if !carried {
				continue
			}
		}
		got, err := run.measure(ctx, tr, g, seed)
		if err != nil {
			return out, err
		}
		if got.Rate > out.Rate {
			out.pool, out.Throughput = tr.pool, got
		}
	}
	return out, nil
}

// best adds a task that finds the best pool. It replaces tr.pool.
func (run *runner) best(tr trial, budget float64, g precision) carried {
	tr.pool = pool{}
	return carried{reproduce.Add(run.Runner, fmt.Sprintf("best pool for %v under %v $/h", tr, budget),
		40*g.queries*g.runs, run.Seeds, func(ctx context.Context, seed uint64) (measured, error) {
			return run.findBest(ctx, tr, budget, g, seed)
		})}
}
