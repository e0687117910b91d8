package kairos

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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
		x, err := systems.Get(system)
		if err != nil {
			return pool{}, err
		}
		x.Options.Renting.Budget = budget
		if change != nil {
			change(&x.Options)
		}
		trials := experiment.Trials{System: x, Known: plan.Known{Measurements: s.measured, Profile: s.beliefs}}
		made, err := x.NewPlanner(systems.PlannerInputs{Profile: s.beliefs, Trials: trials})
		if err != nil {
			return pool{}, err
		}
		var counts []int
		for _, t := range machineTypes {
			counts = append(counts, int(budget/t.PricePerHour))
		}
		spec := s.spec.WithWorkers(counts)
		chosen, err := made.Plan(ctx, plan.Request{Spec: spec, Rates: []float64{1}})
		if err != nil {
			return pool{}, err
		}
		var out pool
		for _, i := range chosen.Instances {
			out[spec.Workers[i.Worker].DeviceType]++
		}
		return out, nil
	}
}

// The pools that a search begins with: so many of the highest by each way to rank them.
const searchedPools = 5

// searchSeeds sets the runs of searches apart from those that measure the pools that were chosen.
const searchSeeds = 1000

// searchBest looks for the pool that carries most under a system: among the highest by either bound and by the
// estimate, then among the neighbours of the best, until none of them carries more.
func (run *runner) searchBest(ctx context.Context, tr trial, budget float64, g precision, seed uint64) (*bestFound,
	error) {
	s, err := run.deployment(tr.setup)
	if err != nil {
		return nil, err
	}
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	q, err := planner.NewQueueing(s.market, violationLimit)
	if err != nil {
		return nil, err
	}
	byProgram, err := s.ranked(f, budget)
	if err != nil {
		return nil, err
	}
	byUpper, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	var open []pool
	for _, e := range q.Highest(byProgram, searchedPools) {
		open = append(open, pool(e.Pool))
	}
	for _, r := range slices.Concat(byProgram[:min(searchedPools, len(byProgram))],
		byUpper[:min(searchedPools, len(byUpper))]) {
		open = append(open, pool(r.Pool))
	}
	out := &bestFound{pools: len(byProgram)}
	done := make(map[pool]bool)
	for len(open) > 0 {
		before := out.pool
		for _, p := range open {
			if done[p] {
				continue
			}
			done[p] = true
			if err := run.challenge(ctx, out, tr, p, g, seed); err != nil {
				return nil, err
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
func (run *runner) challenge(ctx context.Context, best *bestFound, tr trial, p pool, g precision, seed uint64) error {
	tr.pool = p
	best.evaluated++
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
	model  string
	budget float64
	tasks  map[string]*reproduce.Task            // by chooser; the result is a poolMeasured
	best   map[string]*reproduce.Task            // by system
	search map[uint64]func() (*bestFound, error) // by seed
}

// poolMeasured is a chosen pool and what it carries.
type poolMeasured struct {
	pool
	experiment.Throughput
}

// figureBudgets compares the pools that planners choose at five budgets with the best of a search.
func figureBudgets(run *runner) error {
	var all []*budgetContest
	for _, b := range comparedBudgets {
		for _, m := range models {
			x := &budgetContest{model: m.name, budget: b, tasks: make(map[string]*reproduce.Task),
				best: make(map[string]*reproduce.Task), search: make(map[uint64]func() (*bestFound, error))}
			run.addBudgetTasks(x)
			all = append(all, x)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		for _, x := range all {
			x.addRows(o)
		}
		var panels []plot.Panel
		for _, b := range comparedBudgets {
			var groups []string
			lines := make([]plot.Line, len(choosers))
			for _, x := range all {
				if x.budget != b {
					continue
				}
				groups = append(groups, x.model)
				for n, c := range choosers {
					lines[n].Name = c.name
					lines[n].Y = append(lines[n].Y, reproduce.Mean(x.below(c)))
				}
			}
			panels = append(panels, reproduce.Bars(fmt.Sprintf("%v $/h: %% below the best", b), groups, lines...))
		}
		addChart(o, "budgets", "budgets: the chosen pools", 1, panels...)
		return nil
	})
	return nil
}

// addBudgetTasks adds the search and the choices of a contest, each measured afterwards with seeds of its own.
func (run *runner) addBudgetTasks(x *budgetContest) {
	g := run.chosen
	weight := g.queries * g.runs * max(int(x.budget), 1)
	measured := func(ctx context.Context, p pool, system string, seed uint64) (poolMeasured, error) {
		got, err := run.measure(ctx, trial{
			setup: paperSetup(x.model), system: system, arrivals: poisson, pool: p,
		}, g, seed)
		return poolMeasured{p, got}, err
	}
	for _, c := range choosers {
		x.tasks[c.name] = run.AddTask(fmt.Sprintf("the pool of %s for %s at %v $/h", c.name, x.model, x.budget), weight,
			run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
				s, err := run.deployment(paperSetup(x.model))
				if err != nil {
					return nil, err
				}
				p, err := c.choose(ctx, s, x.budget)
				if err != nil {
					return nil, err
				}
				return measured(ctx, p, c.system, seed)
			})
	}
	for _, system := range []string{kairosRule, scheduleRule} {
		x.best[system] = run.AddTask(fmt.Sprintf("search for %s of %s at %v $/h", system, x.model, x.budget), 10*weight,
			run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
				found, err := run.searchOnce(ctx, x, run.coarse, seed)
				if err != nil {
					return nil, err
				}
				return measured(ctx, found.pool, system, seed)
			})
	}
}

// searchOnce searches with Kairos's rule, once for both systems: a search with the other rule takes twice as long, and
// what is better for one is for the other.
func (run *runner) searchOnce(ctx context.Context, x *budgetContest, g precision, seed uint64) (*bestFound, error) {
	run.mu.Lock()
	search := x.search[seed]
	if search == nil {
		search = sync.OnceValues(func() (*bestFound, error) {
			return run.searchBest(ctx, trial{
				setup: paperSetup(x.model), system: kairosRule, arrivals: poisson,
			}, x.budget, g, searchSeeds+seed)
		})
		x.search[seed] = search
	}
	run.mu.Unlock()
	return search()
}

func (x *budgetContest) rates(t *reproduce.Task) []float64 {
	return reproduce.Each(t, func(m poolMeasured) float64 { return m.Rate })
}

// bestRates returns by seed the most that any pool of a system was found to carry, in queries/s: the search's pool may
// carry a little less than another with the seeds of the measurement.
func (x *budgetContest) bestRates(system string) []float64 {
	out := slices.Clone(x.rates(x.best[system]))
	for _, c := range choosers {
		if c.system == system {
			for i, r := range x.rates(x.tasks[c.name]) {
				out[i] = max(out[i], r)
			}
		}
	}
	return out
}

// below returns by seed how many per cent less a chosen pool carries than the best.
func (x *budgetContest) below(c chooser) []float64 {
	out := x.rates(x.tasks[c.name])
	for i, best := range x.bestRates(c.system) {
		out[i] = 100 * (1 - out[i]/best)
	}
	return out
}

// addRows adds the rows of a contest.
func (x *budgetContest) addRows(o *reproduce.Outcome) {
	setting := map[string]string{
		"model": x.model, "budget": fmt.Sprintf("%v $/h", x.budget), "arrivals": poisson.String(),
	}
	add := func(name string, t *reproduce.Task) {
		o.AddRow(row("budgets", name, throughputRow, "queries/s", setting), x.rates(t)...)
		var pools []pool
		for _, r := range t.Results {
			pools = append(pools, r.(poolMeasured).pool)
		}
		addMachines(o, "budgets", name, setting, pools...)
	}
	for _, system := range []string{kairosRule, scheduleRule} {
		add("best of a search, "+system, x.best[system])
	}
	for _, c := range choosers {
		add(c.name, x.tasks[c.name])
		o.AddRow(row("budgets", c.name, "below the best", "%", setting), x.below(c)...)
	}
}
