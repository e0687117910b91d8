package planning

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/serving"
)

// poolLimits is what no rule can pass with machines of a market, by the fluid program (package bound).
type poolLimits struct {
	m      *market
	solver milp.Solver // nil: nothing is computed
	model  bound.Model
}

// atMost is the highest rate, in queries/s, of which the machines of a pool can have as many in time as the objective
// asks for; nil without a solver, and where the program is too large.
func (l *poolLimits) atMost(ctx context.Context, pool kairos.Pool, start float64) (*float64, error) {
	counts := make([]int, len(l.model.Spec.DeviceTypes))
	for t, n := range pool {
		counts[l.m.pools.Market.Types[t].Device] = n
	}
	return l.largest(start, func(rate float64) (bool, error) {
		_, ok, err := l.cost(ctx, counts, rate, make([]bool, len(counts)))
		return ok, err
	})
}

// forBudget is the highest rate, in queries/s, that any machines for a budget in $/h can have in time.
func (l *poolLimits) forBudget(ctx context.Context, budget, start float64) (*float64, error) {
	counts, rented := l.all(budget)
	return l.largest(start, func(rate float64) (bool, error) {
		cost, ok, err := l.cost(ctx, counts, rate, rented)
		return ok && cost <= budget, err
	})
}

// leastCost is the least money, in $/h, for which machines within a budget have a rate in time; nil where none do.
func (l *poolLimits) leastCost(ctx context.Context, budget, rate float64) (*float64, error) {
	if l.solver == nil {
		return nil, nil
	}
	counts, rented := l.all(budget)
	cost, ok, err := l.cost(ctx, counts, rate, rented)
	if err != nil || !ok {
		return nil, ignoreTooLarge(err)
	}
	return &cost, nil
}

// all is as many machines of each type as a budget pays.
func (l *poolLimits) all(budget float64) (counts []int, rented []bool) {
	counts, rented = make([]int, len(l.model.Spec.DeviceTypes)), make([]bool, len(l.model.Spec.DeviceTypes))
	for _, t := range l.m.pools.Market.Types {
		if t.Price <= 0 {
			continue
		}
		rented[t.Device] = true
		if counts[t.Device] = int(min(budget/t.Price+1, maxCounted)); t.Max > 0 {
			counts[t.Device] = min(counts[t.Device], t.Max)
		}
	}
	return counts, rented
}

// maxCounted bounds the machines of a type that a budget pays.
const maxCounted = 10_000

// largest is the largest rate that is ok, to a part in a thousand. start is a guess.
func (l *poolLimits) largest(start float64, ok func(rate float64) (bool, error)) (*float64, error) {
	if l.solver == nil || !(start > 0) {
		return nil, nil
	}
	low, high := 0.0, start
	for {
		good, err := ok(high)
		if err != nil {
			return nil, ignoreTooLarge(err)
		}
		if !good {
			break
		}
		if low, high = high, 2*high; high > farMultiple*start {
			return &low, nil
		}
	}
	for high-low > high/1000 {
		middle := (low + high) / 2
		good, err := ok(middle)
		if err != nil {
			return nil, ignoreTooLarge(err)
		}
		if good {
			low = middle
		} else {
			high = middle
		}
	}
	return &high, nil // nothing above it
}

func ignoreTooLarge(err error) error {
	if errors.Is(err, bound.ErrTooLarge) {
		return nil
	}
	return err
}

// cost is the least money for a rate with so many machines by DeviceTypeID, of which some are rented; ok is false where
// they are not enough.
func (l *poolLimits) cost(ctx context.Context, counts []int, rate float64, rented []bool) (cost float64, ok bool,
	err error) {
	world := l.model
	world.Spec = l.model.Spec.WithWorkers(counts)
	rates := make([]float64, len(world.Spec.Apps))
	rates[l.m.App] = rate
	queries := steady(world.Spec, rates)
	for k := range queries {
		queries[k].Variant = l.m.pools.Variant
		queries[k].Deadline = serving.Time(l.m.pools.Market.Within)
	}
	late := world.Spec.Apps[l.m.App].SLO.Allowed()
	cost, err = bound.Cost(ctx, l.solver, world, queries, bound.Rent{Late: late, Rented: rented},
		bound.Options{Windows: 1})
	if errors.Is(err, bound.ErrTooLittle) {
		return 0, false, nil
	}
	return cost, err == nil, err
}

// bounded puts what no rule can pass beside the pools of a budget.
func (m *market) bounded(ctx context.Context, out *Budget, shown []candidate, views []*Pool) error {
	l := &poolLimits{m: m, solver: m.solver, model: bounds.Model(m.pools.Env.Spec, m.machines)}
	var err error
	for k, v := range views {
		if v.AtMost, err = l.atMost(ctx, shown[k].Pool, v.Fluid); err != nil {
			return fault.Wrap(fault.Config, err)
		}
	}
	if m.Demand > 0 {
		out.AtLeast, err = l.leastCost(ctx, out.Budget, m.Demand)
	} else {
		out.AtMost, err = l.forBudget(ctx, out.Budget, shown[0].Bound)
	}
	return err
}
