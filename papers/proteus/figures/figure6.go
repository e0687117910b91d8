package proteus

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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

var (
	batchers  = []string{"adaptive", "earlydrop", "aimd"}
	loads     = []int{50, 60, 70, 80, 90, 100} // per cent of the plan's capacity
	processes = []struct {
		name string
		gaps func() (workload.Gaps, error)
	}{
		{"uniform", func() (workload.Gaps, error) { return workload.Uniform{}, nil }},
		{"Poisson", func() (workload.Gaps, error) { return workload.Poisson{}, nil }},
		{"gamma(0.05)", func() (workload.Gaps, error) { return workload.NewGamma(0.05) }},
	}
)

// figure6 compares three batchers under one constant plan and three kinds of arrivals (§6.4). The paper shows one load
// without naming it; here are six.
func figure6(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	mix := run.trace(lightTrace).mean()
	planner, err := system("proteus").NewPlanner(systems.PlannerInputs{Profile: w.Beliefs, Solver: run.Solver,
		Batches: batches})
	if err != nil {
		return err
	}
	fourfold := make([]float64, len(mix))
	for a := range mix {
		fourfold[a] = 4 * mix[a]
	}
	fixed, err := planner.Plan(context.Background(), plan.Request{Spec: w.Spec, Rates: fourfold})
	if err != nil {
		return err
	}
	tasks := make(map[string]*task)
	for _, p := range processes {
		for _, load := range loads {
			for _, b := range batchers {
				tasks[fmt.Sprint(p.name, load, b)] = run.batching(w, fixed, p.name, p.gaps, load, b)
			}
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		c := &plot.Chart{Title: "Proteus, Figure 6: SLO violations (%) by load", Columns: 3}
		for _, p := range processes {
			lines := make([]plot.Line, len(batchers))
			for _, load := range loads {
				setting := map[string]string{"arrivals": p.name, "load": fmt.Sprintf("%d %%", load)}
				base := tasks[fmt.Sprint(p.name, load, "adaptive")]
				for i, b := range batchers {
					t := tasks[fmt.Sprint(p.name, load, b)]
					violations := t.each(func(r *result) float64 { return 100 * r.violations })
					o.AddRow(row("6", b, "SLO violations", "%", setting), violations...)
					lines[i].Name = b
					lines[i].X, lines[i].Y = append(lines[i].X, float64(load)),
						append(lines[i].Y, reproduce.Mean(violations))
					if b == "adaptive" {
						continue
					}
					if ratio := reproduce.Mean(violations) / reproduce.Mean(base.each(func(r *result) float64 {
						return 100 * r.violations
					})); !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
						r := row("6", b, "violations over adaptive's", "times", setting)
						if p.name != "uniform" {
							r = r.WithPublished(publishedRatio[b], "§6.4, at a load that is not named")
						}
						o.AddRow(r, ratio)
					}
				}
			}
			c.Panels = append(c.Panels, plot.Panel{
				Name: p.name + " arrivals", XName: "load (% of capacity)", Lines: lines, Low: 0, High: math.NaN(),
			})
		}
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-6", Drawing: c})
		return nil
	})
	return nil
}

// batching adds a task that runs a fixed plan at a load in per cent of its capacity, the same for every app. So no app
// has spare capacity while another lacks it.
func (run *runner) batching(w *experiment.Environment, fixed *plan.Plan, process string,
	gaps func() (workload.Gaps, error),
	load int, batcher string) *task {
	s := systems.System{
		Name: "proteus with " + batcher, Planner: "proteus", Router: "weighted", Batcher: batcher, Scaler: "fixed",
	}
	key := fmt.Sprintf("%s on %s arrivals at %d %%", batcher, process, load)
	total := reproduce.Sum(fixed.Capacity) * run.batchingSpan.Seconds()
	return run.addTask(key, int(total), max(run.Seeds, 3), func(ctx context.Context, seed uint64) (any, error) {
		var all []workload.Arrival
		for a := range w.Spec.Apps {
			g, err := gaps()
			if err != nil {
				return nil, err
			}
			rate, err := workload.NewRate([]workload.Point{
				{Rate: fixed.Capacity[a] * float64(load) / 100}, {At: run.batchingSpan.Seconds()},
			}, false)
			if err != nil {
				return nil, err
			}
			p := workload.NewProcess(rate, g, workload.Rand(seed, fmt.Sprintf("%s %d", process, a)))
			for {
				at, ok := p.NextTime()
				if !ok {
					break
				}
				all = append(all, query(at, serving.AppID(a)))
			}
		}
		slices.SortStableFunc(all, func(x, y workload.Arrival) int { return int(x.At - y.At) })
		c := experiment.Case{
			Env: w, System: s, Span: run.batchingSpan, Initial: fixed, Record: report.Options{Exact: 1},
			Source: func(uint64) workload.Source { return workload.FromSlice(all) },
		}
		r, err := c.Run(ctx, seed)
		if err != nil {
			return nil, err
		}
		return &result{
			Run: r, violations: r.Report.Overall.ViolationRatio, throughput: r.Report.Overall.Throughput,
		}, nil
	})
}
