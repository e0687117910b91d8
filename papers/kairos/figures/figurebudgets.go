package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
)

// comparedBudgets are the budgets of Figure budgets, in $/h.
var comparedBudgets = []float64{1, 1.5, 2.5, 4, 10}

// chooser is a way to choose a pool, and the system whose rule for queries runs on it.
type chooser struct {
	name   string
	system string
	choose func(ctx context.Context, s *deployment, budget float64) (pool, error)
}

// choosers are the ways that Figure budgets compares.
var choosers = []chooser{
	{"kairos", kairosRule, planned("kairos", nil)},
	{"highest linear program", kairosRule, func(_ context.Context, s *deployment, budget float64) (pool, error) {
		return s.fluidPool(budget)
	}},
	{"kairos-fluid, no trial", kairosRule, planned("kairos-fluid", func(o *systems.Options) { o.Renting.Trials = -1 })},
	{"kairos-fluid", kairosRule, planned("kairos-fluid", nil)},
	{"kairos-schedule", scheduleRule, planned("kairos-schedule", nil)},
}

// planned chooses by the planner of a system with other options; change may be nil.
func planned(system string, change func(*systems.Options)) func(context.Context, *deployment, float64) (pool, error) {
	return func(ctx context.Context, s *deployment, budget float64) (pool, error) {
		x := reproduce.System(system)
		x.Options.Renting.Budget = budget
		if change != nil {
			change(&x.Options)
		}
		trials := experiment.Trials{System: x, Known: plan.Known{Measurements: s.measured, Profile: s.beliefs}}
		made, err := x.NewPlanner(systems.PlannerInputs{Profile: s.beliefs, Trials: trials})
		if err != nil {
			return pool{}, err
		}
		spec := s.affordable(budget)
		chosen, err := made.Plan(ctx, plan.Request{Spec: spec, Rates: []float64{1}})
		if err != nil {
			return pool{}, err
		}
		return poolOf(spec, chosen), nil
	}
}

// The pools that a search begins with: so many of the highest by each way to rank them.
const searchedPools = 5

// searchSeeds sets the runs of searches apart from those that measure the pools that were chosen.
const searchSeeds = 1000

// searchBest looks for the pool that carries most under a system: among the highest by either bound and by the
// estimate, then among the neighbours of the best, until none of them carries more.
func (run *runner) searchBest(ctx context.Context, tr trial, budget float64, g precision, seed uint64) (out measured,
	err error) {
	s, err := run.deployment(tr.setup)
	if err != nil {
		return out, err
	}
	f, err := s.fluid()
	if err != nil {
		return out, err
	}
	q, err := planner.NewQueueing(s.market, violationLimit)
	if err != nil {
		return out, err
	}
	byProgram, err := s.ranked(f, budget)
	if err != nil {
		return out, err
	}
	byUpper, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return out, err
	}
	var open []pool
	for _, e := range q.Highest(byProgram, searchedPools) {
		open = append(open, pool(e.Pool))
	}
	for _, r := range slices.Concat(byProgram[:min(searchedPools, len(byProgram))],
		byUpper[:min(searchedPools, len(byUpper))]) {
		open = append(open, pool(r.Pool))
	}
	done := make(map[pool]bool)
	for len(open) > 0 {
		before := out.pool
		for _, p := range open {
			if done[p] {
				continue
			}
			done[p] = true
			if err := run.challenge(ctx, &out, tr, p, g, seed); err != nil {
				return out, err
			}
		}
		open = nil
		if out.pool != before {
			open = neighbours(out.pool, budget)
		}
	}
	return out, nil
}

// challenge makes p the best pool if it carries more.
func (run *runner) challenge(ctx context.Context, best *measured, tr trial, p pool, g precision, seed uint64) error {
	tr.pool = p
	if best.Rate > 0 {
		s, err := run.deployment(tr.setup)
		if err != nil {
			return err
		}
		probe, err := s.probe(tr, g, giveUpShare)
		if err != nil {
			return err
		}
		carried, _, err := experiment.Carries(ctx, probe, g.search(best.Rate*(1+g.resolution/2), seed))
		if err != nil || !carried {
			return err
		}
	}
	got, err := run.measure(ctx, tr, g, seed)
	if err == nil && got.Rate > best.Rate {
		best.pool, best.Throughput = p, got
	}
	return err
}

// neighbours returns the pools that differ from p by at most one machine of each type but the cheapest, of which they
// have as many as the rest of the budget pays.
func neighbours(p pool, budget float64) (out []pool) {
	cheapest := 0
	for t := range machineTypes {
		if machineTypes[t].PricePerHour < machineTypes[cheapest].PricePerHour {
			cheapest = t
		}
	}
	var add func(t int, q pool)
	add = func(t int, q pool) {
		switch {
		case t == len(q):
			q[cheapest] = 0
			if left := budget - q.cost(); left >= 0 {
				q[cheapest] = int(left / machineTypes[cheapest].PricePerHour)
				out = append(out, q)
			}
		case t == cheapest:
			add(t+1, q)
		default:
			for d := -1; d <= 1; d++ {
				if q[t] = p[t] + d; q[t] >= 0 {
					add(t+1, q)
				}
			}
		}
	}
	add(0, p)
	return out
}

// budgetContest is what is compared for a model and a budget.
type budgetContest struct {
	chosen map[string]carried // by chooser
	best   map[string]carried // by system, of a search
}

// figureBudgets compares the pools that planners choose at five budgets with the best of a search.
func figureBudgets(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("budgets", "Kairos, Figure budgets: the chosen pools", 1)
	for _, b := range comparedBudgets {
		bars := chart.Bars(fmt.Sprintf("%v $/h: %% below the best", b))
		for _, m := range models {
			x := run.contest(m.name, b)
			at := f.At("model", m.name, "budget", fmt.Sprintf("%v $/h", b), "arrivals", poisson)
			add := func(name string, c carried) {
				at.Row(name, throughputRow, "queries/s", c.rates())
				addMachines(at, name, c.pools)
			}
			for _, system := range []string{kairosRule, scheduleRule} {
				add("best of a search, "+system, x.best[system])
			}
			for _, c := range choosers {
				add(c.name, x.chosen[c.name])
				at.Row(c.name, "below the best", "%", x.below(c))
				bars.Bar(c.name, m.name, x.below(c))
			}
		}
	}
	return nil
}

// contest adds the search and the choices for a model at a budget. All pools are measured with seeds of their own.
// Both systems get the pools of a search with Kairos's rule: one with the other takes twice as long, and what is better
// for one is for the other.
func (run *runner) contest(model string, budget float64) *budgetContest {
	x := &budgetContest{chosen: make(map[string]carried), best: make(map[string]carried)}
	g := run.chosen
	weight := g.queries * g.runs * max(int(budget), 1)
	var searches reproduce.Memo[uint64, pool] // by seed
	add := func(key string, weight int, system string,
		find func(ctx context.Context, seed uint64) (pool, error)) carried {
		return carried{reproduce.Add(run.Runner, fmt.Sprintf("%s %s at %v $/h", key, model, budget), weight, run.Seeds,
			func(ctx context.Context, seed uint64) (measured, error) {
				p, err := find(ctx, seed)
				if err != nil {
					return measured{}, err
				}
				got, err := run.measure(ctx, trial{
					setup: paperSetup(model), system: system, arrivals: poisson, pool: p,
				}, g, seed)
				return measured{p, got, 0}, err
			})}
	}
	for _, c := range choosers {
		x.chosen[c.name] = add("the pool of "+c.name+" for", weight, c.system,
			func(ctx context.Context, _ uint64) (pool, error) {
				s, err := run.deployment(paperSetup(model))
				if err != nil {
					return pool{}, err
				}
				return c.choose(ctx, s, budget)
			})
	}
	for _, system := range []string{kairosRule, scheduleRule} {
		x.best[system] = add("search for "+system+" of", 10*weight, system,
			func(ctx context.Context, seed uint64) (pool, error) {
				return searches.Get(seed, func() (pool, error) {
					found, err := run.searchBest(ctx, trial{
						setup: paperSetup(model), system: kairosRule, arrivals: poisson,
					}, budget, run.coarse, searchSeeds+seed)
					return found.pool, err
				})
			})
	}
	return x
}

// below returns how many per cent less a chosen pool carries than the best that was found for its system: the search's
// pool may carry a little less than another with the seeds of the measurement.
func (x *budgetContest) below(c chooser) reproduce.Values {
	best := x.best[c.system].rates()
	for _, other := range choosers {
		if other.system == c.system {
			best = best.With(x.chosen[other.name].rates(), func(a, b float64) float64 { return max(a, b) })
		}
	}
	return x.chosen[c.name].rates().With(best, func(v, most float64) float64 { return 100 * (1 - v/most) })
}
