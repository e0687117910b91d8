package kairos

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// ownPlanner is the planner of the default system.
const ownPlanner = "fluid"

// ownPool is the task that finds, by seed, the pool that the default system's planner rents and what it carries there.
type ownPool struct{ *reproduce.Task }

// ownPoolTask adds the task for a budget in $/h.
func (run *runner) ownPoolTask(at setup, by arrivals, budget float64, g precision) *ownPool {
	key := fmt.Sprintf("the pool of %s for %v at %v $/h, %v", systems.Default, at, budget, by)
	weight := 2 * g.queries * g.runs
	return &ownPool{run.AddTask(key, weight, run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		p, err := run.ownPool(ctx, at, budget)
		if err != nil {
			return nil, err
		}
		got, err := run.measure(ctx, trial{setup: at, pool: p, system: systems.Default, arrivals: by}, g, seed)
		return poolMeasured{p, got}, err
	})}
}

// ownKey identifies a pool that the default system's planner rents.
type ownKey struct {
	setup
	budget float64 // $/h
}

// cachedPool is a rented pool. It does not depend on the seed, and figures share it.
type cachedPool struct {
	once sync.Once
	pool
	err error
}

// ownPool returns the pool that the default system's planner rents. Calls with equal arguments share one search.
func (run *runner) ownPool(ctx context.Context, at setup, budget float64) (pool, error) {
	s, err := run.deployment(at)
	if err != nil {
		return pool{}, err
	}
	run.mu.Lock()
	c := run.rentals[ownKey{at, budget}]
	if c == nil {
		c = &cachedPool{}
		run.rentals[ownKey{at, budget}] = c
	}
	run.mu.Unlock()
	c.once.Do(func() { c.pool, c.err = s.mostCarried(ctx, systems.Default, budget, run.rentalResolution) })
	return c.pool, c.err
}

// mostCarried returns the pool that the planner of a system rents for the highest rate that it says to serve in time
// within a budget, found up to a resolution relative to it. The planner is asked for a demand; the paper's question is
// what a budget carries.
func (s *deployment) mostCarried(ctx context.Context, system string, budget, resolution float64) (pool, error) {
	ranked, err := s.fluid()
	if err != nil {
		return pool{}, err
	}
	best, err := s.fluidPool(budget)
	if err != nil {
		return pool{}, err
	}
	var out pool
	low, high := 0.0, ranked.Of(best.counts())
	for high-low > resolution*high {
		rate := (low + high) / 2
		p, served, err := s.rented(ctx, system, budget, rate)
		if err != nil {
			return pool{}, err
		}
		if served {
			out, low = p, rate
		} else {
			high = rate
		}
	}
	return out, nil
}

// rented returns the pool that the planner of a system rents for a rate, in queries/s. served is false where the plan
// leaves queries out, or expects more late ones than the objective allows.
func (s *deployment) rented(ctx context.Context, system string, budget, rate float64) (out pool, served bool,
	err error) {
	x, err := systems.Get(system)
	if err != nil {
		return pool{}, false, err
	}
	x.Options.Renting.Budget = budget
	made, err := x.NewPlanner(systems.PlannerInputs{
		Profile: s.careful, Proposed: true,
		Trials: experiment.Trials{System: x, Known: plan.Known{Measurements: s.measured, Profile: s.beliefs}},
	})
	if err != nil {
		return pool{}, false, err
	}
	var counts []int
	for _, t := range machineTypes {
		counts = append(counts, int(budget/t.PricePerHour))
	}
	spec := s.spec.WithWorkers(counts)
	spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].Tenure = serving.Rented
	}
	chosen, err := made.Plan(ctx, plan.Request{Spec: spec, Rates: []float64{rate}, Dispersions: []float64{1}})
	if err != nil {
		return pool{}, false, err
	}
	for _, i := range chosen.Instances {
		out[spec.Workers[i.Worker].DeviceType]++
	}
	return out, chosen.Shed == nil && chosen.Forecast.Violation <= violationLimit, nil
}

func (o *ownPool) bySeed() (out []experiment.Throughput) {
	for _, r := range o.Results {
		out = append(out, r.(poolMeasured).Throughput)
	}
	return out
}

func (o *ownPool) pools() (out []pool) {
	for _, r := range o.Results {
		out = append(out, r.(poolMeasured).pool)
	}
	return out
}

func (o *ownPool) rates() []float64 {
	return reproduce.Each(o.Task, func(m poolMeasured) float64 { return m.Rate })
}
