package planning

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/sim/truth"
)

// beside puts the fluid bound of a demand beside a plan for it. Without a solver there is none.
func (a *answerer) beside(ctx context.Context, p *host.Profiled, d *Demand, v *Plan) error {
	if d.Total() <= 0 || v.Error != "" {
		return nil
	}
	solver, err := host.Solver()
	if err != nil {
		return nil //nolint:nilerr // a plan without a bound is a plan
	}
	machines, err := truth.NewTable(p.Spec(), p.Measurements(), truth.Lognormal, nil)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	world, queries := bounds.Model(p.Spec(), machines), steady(p.Spec(), d.Rates)
	r, err := bound.Utility(ctx, solver, world, queries, bound.Options{Windows: 1})
	if errors.Is(err, bound.ErrTooLarge) {
		return nil
	}
	if err != nil {
		return err
	}
	utility := utilityOf(p.Spec(), v)
	v.Utility, v.Fluid = &utility, &Fluid{Utility: r.Utility, Served: r.InTime}
	if r.Utility > 0 {
		v.Fluid.Ratio = utility / r.Utility
	}
	rent := bounds.Rented(p.Spec())
	if rent == nil {
		return nil
	}
	rent.LateOf, rent.Target = make([]float64, len(v.Apps)), make([]float64, len(v.Apps))
	for k := range v.Apps {
		if x := &v.Apps[k]; x.Demand > 0 {
			rent.LateOf[k] = x.Shed / x.Demand
			if x.Accuracy != nil && x.Served > 0 {
				rent.Target[k] = *x.Accuracy * (1 - rounding)
			}
		}
	}
	cost, err := bound.Cost(ctx, solver, world, queries, *rent, bound.Options{Windows: 1})
	if errors.Is(err, bound.ErrTooLittle) {
		return nil
	}
	if err != nil {
		return err
	}
	v.Fluid.CostPerHour = &cost
	return nil
}

// steady is a demand, in queries/s by AppID, as queries that stand for many: for as many as arrive in the longest
// objective, while machines have as much time.
func steady(spec *serving.Spec, rates []float64) (out []bound.Query) {
	longest := time.Duration(0)
	for a := range rates {
		if rates[a] > 0 {
			longest = max(longest, spec.Apps[a].SLO.Latency)
		}
	}
	for a := range rates {
		if rates[a] <= 0 {
			continue
		}
		app := &spec.Apps[a]
		sizes, shares := app.Mix.Sizes, app.Mix.Shares
		if len(sizes) == 0 {
			sizes, shares = []int32{1}, []float64{1}
		}
		mean := pipeline.New(spec, serving.AppID(a)).MeanItems()
		for k, n := range sizes {
			items := make([]float64, len(mean))
			for at := range items {
				items[at] = float64(n) * mean[at]
			}
			out = append(out, bound.Query{
				App: serving.AppID(a), Deadline: serving.Time(app.SLO.Latency), Variant: serving.None, Items: items,
				Count: rates[a] * shares[k] * longest.Seconds(),
			})
		}
	}
	return out
}

// utilityOf is the utility that a plan has by its own description.
func utilityOf(spec *serving.Spec, v *Plan) float64 {
	sum, all := 0.0, 0.0
	for a := range v.Apps {
		weight, best := spec.Apps[a].Weight, spec.BestAccuracy(serving.AppID(a))
		if weight <= 0 {
			weight = 1
		}
		x := &v.Apps[a]
		all += weight * x.Demand
		if x.Accuracy != nil && best > 0 {
			sum += weight * x.Served * *x.Accuracy / best
		}
	}
	if all <= 0 {
		return 0
	}
	return sum / all
}
