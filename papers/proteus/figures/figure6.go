package proteus

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// publishedRatio is the share of violations over that of adaptive batching, on Poisson and gamma arrivals (§6.4: "2-3
// times", "3.8-4 times").
var publishedRatio = map[string]float64{"earlydrop": 2.5, "aimd": 3.9}

// figure6 compares three batchers under one constant plan and three kinds of arrivals (§6.4). The paper shows one load
// without naming it; here are six, in per cent of the plan's capacity.
func figure6(run *runner, f *reproduce.Sheet) error {
	planner, err := reproduce.System("proteus").NewPlanner(run.cluster.Known())
	if err != nil {
		return err
	}
	rates := reproduce.Scaled(run.trace(lightTrace).mean(), 4)
	fixed, err := planner.Plan(context.Background(), plan.Request{Spec: run.spec, Rates: rates})
	if err != nil {
		return err
	}
	c := f.Chart("6", "Proteus, Figure 6: SLO violations (%) by load", 3)
	for _, p := range []arrivals{{"uniform", uniform}, {"Poisson", poisson}, {"gamma(0.05)", clumped}} {
		panel := c.Panel(p.name+" arrivals", "load (% of capacity)", 0, reproduce.Auto)
		for _, load := range []int{50, 60, 70, 80, 90, 100} {
			at := f.At("arrivals", p.name, "load", fmt.Sprintf("%d %%", load))
			var adaptive reproduce.Values
			for _, b := range []string{"adaptive", "earlydrop", "aimd"} {
				late := run.batching(fixed, p, load, b).Each(violations)
				at.Row(b, violationRow, "%", late)
				panel.Point(b, float64(load), late)
				if b == "adaptive" {
					adaptive = late
					continue
				}
				r := at.Row(b, "violations over adaptive's", "times", func() []float64 {
					return []float64{late.Mean() / adaptive.Mean()}
				})
				if p.name != "uniform" {
					r.Published(publishedRatio[b], "§6.4, at a load that is not named")
				}
			}
		}
	}
	return nil
}

// batching adds a task that runs a fixed plan at a load in per cent of its capacity, the same for every app. So no app
// has spare capacity while another lacks it.
func (run *runner) batching(fixed *plan.Plan, p arrivals, load int, batcher string) runs {
	s := systems.System{
		Name: "proteus with " + batcher, Planner: "proteus", Router: "weighted", Batcher: batcher, Scaler: "fixed",
	}
	key := fmt.Sprintf("%s on %s arrivals at %d %%", batcher, p.name, load)
	total := reproduce.Sum(fixed.Capacity) * run.batchingSpan.Seconds()
	return reproduce.Add(run.Runner, key, int(total), max(run.Seeds, 3),
		func(ctx context.Context, seed uint64) (*result, error) {
			var all []workload.Arrival
			for a := range run.spec.Apps {
				corners := []workload.Point{
					{Rate: fixed.Capacity[a] * float64(load) / 100}, {At: run.batchingSpan.Seconds()},
				}
				r := workload.Rand(seed, fmt.Sprintf("%s %d", p.name, a))
				more, err := renewals(serving.AppID(a), corners, p.gaps, r, serving.Never)
				if err != nil {
					return nil, err
				}
				all = append(all, more...)
			}
			slices.SortStableFunc(all, func(x, y workload.Arrival) int { return cmp.Compare(x.At, y.At) })
			c := experiment.Case{
				Env: run.cluster, System: s, Span: run.batchingSpan, Initial: fixed, Record: report.Options{Exact: 1},
				Source: func(uint64) workload.Source { return workload.FromSlice(all) },
			}
			r, err := c.Run(ctx, seed)
			if err != nil {
				return nil, err
			}
			return &result{Run: r, violations: r.Report.Overall.ViolationRatio}, nil
		})
}
