package ramsis

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// fluidBound returns the highest mean accuracy, in per cent, with which workers can serve a steady flow of rate
// queries/s. Every batch ends within the objective, and there are always enough queries to fill it. Randomness can only
// lower the accuracy, which is concave in the flow. It is NaN when the workers do not carry the flow.
func fluidBound(ctx context.Context, solver milp.Solver, at setup, rate float64) (float64, error) {
	list, err := at.models()
	if err != nil {
		return 0, err
	}
	p := milp.Program{Maximize: true}
	var served, busy []milp.Term
	for _, m := range list {
		for b, took := range m.took {
			if took > at.slo {
				continue
			}
			n := float64(b + 1)
			c := p.Column(milp.Column{Objective: n * m.accuracy, Upper: milp.Inf}) // batches/s
			served = append(served, milp.Term{Column: c, Coef: n})
			busy = append(busy, milp.Term{Column: c, Coef: took.Seconds()})
		}
	}
	p.Row(rate, rate, served...)
	p.Row(-milp.Inf, float64(at.workers), busy...)
	s, err := solver.Solve(ctx, &p, milp.Limits{})
	if err != nil {
		return 0, fmt.Errorf("fluid bound of %v queries/s: %w", rate, err)
	}
	if s.Status == milp.Infeasible {
		return math.NaN(), nil
	}
	if s.Status != milp.Optimal {
		return 0, fmt.Errorf("fluid bound of %v queries/s: %v", rate, s.Status)
	}
	return s.Objective / rate, nil
}

// fluidTask adds a task that computes the bound of a load: the mean of the bounds of its rates, weighted by queries.
func (run *runner) fluidTask(at setup, on *load) reproduce.Runs[float64] {
	key := fmt.Sprintf("fluid bound of %s, %v", on.name, at)
	return reproduce.Add(run.Runner, key, 1000, 1, func(ctx context.Context, _ uint64) (float64, error) {
		byRate := make(map[float64]float64)
		total, queries := 0.0, 0.0
		const second = serving.Time(1e9)
		for t := serving.Time(0); t < serving.Time(on.span); t += second {
			rate := on.rate.At(t)
			if _, ok := byRate[rate]; !ok {
				x, err := fluidBound(ctx, run.Solver, at, rate)
				if err != nil {
					return 0, err
				}
				byRate[rate] = x
			}
			total += rate * byRate[rate]
			queries += rate
		}
		return total / queries, nil
	})
}
