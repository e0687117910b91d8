package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// ownPlanner is the planner of the default system.
const ownPlanner = "fluid"

// rentalKey identifies a pool that the default system's planner rents. It does not depend on the seed.
type rentalKey struct {
	setup
	budget float64 // $/h
}

// rented adds a task that finds the pool that the default system's planner rents, and what it carries there.
func (run *runner) rented(at setup, by arrivals, budget float64, g precision) carried {
	key := fmt.Sprintf("the pool of %s for %v at %v $/h, %v", systems.Default, at, budget, by)
	return carried{reproduce.Add(run.Runner, key, 2*g.queries*g.runs, run.Seeds,
		func(ctx context.Context, seed uint64) (measured, error) {
			p, err := run.rentals.Get(rentalKey{at, budget}, func() (pool, error) {
				s, err := run.deployment(at)
				if err != nil {
					return pool{}, err
				}
				return s.mostCarried(ctx, systems.Default, budget, run.rentalResolution)
			})
			if err != nil {
				return measured{}, err
			}
			got, err := run.measure(ctx, trial{setup: at, pool: p, system: systems.Default, arrivals: by}, g, seed)
			return measured{p, got, 0}, err
		})}
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
	x := reproduce.System(system)
	x.Options.Renting.Budget = budget
	made, err := x.NewPlanner(systems.PlannerInputs{
		Profile: s.careful, Proposed: true,
		Trials: experiment.Trials{System: x, Known: plan.Known{Measurements: s.measured, Profile: s.beliefs}},
	})
	if err != nil {
		return pool{}, false, err
	}
	spec := s.affordable(budget)
	spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].Tenure = serving.Rented
	}
	chosen, err := made.Plan(ctx, plan.Request{Spec: spec, Rates: []float64{rate}, Dispersions: []float64{1}})
	if err != nil {
		return pool{}, false, err
	}
	return poolOf(spec, chosen), chosen.Shed == nil && chosen.Forecast.Violation <= violationLimit, nil
}

// affordable returns the spec with as many machines of each type as a budget in $/h pays of it alone.
func (s *deployment) affordable(budget float64) *serving.Spec {
	var counts []int
	for _, t := range machineTypes {
		counts = append(counts, int(budget/t.PricePerHour))
	}
	return s.spec.WithWorkers(counts)
}

// poolOf returns the machines on which a plan has instances.
func poolOf(spec *serving.Spec, p *plan.Plan) (out pool) {
	for _, i := range p.Instances {
		out[spec.Workers[i.Worker].DeviceType]++
	}
	return out
}
