package infless

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/reproduce"
)

// Published throughput for a unit of resources, relative to the largest of each part of the figure (Figure 18, plotting
// code).
var (
	functionCounts = []int{10, 20, 30, 40}
	published18a   = map[string][]float64{
		"infless": {.968, 1, .968, .935}, "batch": {.333, .349, .376, .419}, "openfaas+": {.215, .226, .237, .237},
	}
	objectives   = []time.Duration{150 * ms, 200 * ms, 250 * ms, 300 * ms}
	published18b = map[string][]float64{
		"infless": {.706, .912, .929, 1}, "batch": {.294, .319, .333, .343}, "openfaas+": {.206, .206, .206, .211},
	}
)

// figure18 shows the throughput for a unit of allocated resources, by number of functions and by objective.
func figure18(run *runner) error {
	names := []string{"infless", "batch", "openfaas+", "infless-balanced", "infless-dense"}
	addTask := func(key, system string, functions []function) *reproduce.Task {
		return run.AddTask("throughput for resources, "+key+", by "+system, 3, 1,
			func(ctx context.Context, _ uint64) (any, error) {
				w, err := newEnvironment(functions, largeServers)
				if err != nil {
					return nil, err
				}
				p, err := newPlanningSystem(w, system)
				if err != nil {
					return nil, err
				}
				rates, total := loadShares(len(functions)), 0.0
				for a := range rates {
					rates[a] *= 100
					total += rates[a]
				}
				out, _ := p.plan(ctx, rates)
				if out == nil {
					return 0.0, nil
				}
				for a := range rates {
					if out.Shed != nil {
						total -= out.Shed[a]
					}
				}
				resources, _, _ := p.resources(out)
				return total / resources, nil
			})
	}
	byCount, bySLO := make(map[string][]*reproduce.Task), make(map[string][]*reproduce.Task)
	for _, system := range names {
		for _, n := range functionCounts {
			byCount[system] = append(byCount[system], addTask(fmt.Sprint(n, " functions"), system,
				variedFunctions(n, 0)))
		}
		for _, slo := range objectives {
			bySLO[system] = append(bySLO[system], addTask(fmt.Sprint("20 functions at ", slo), system,
				variedFunctions(20, slo)))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		addRows := func(figure, key string, of map[string][]*reproduce.Task, published map[string][]float64,
			at func(int) any) {
			most := 0.0
			for _, t := range of["infless"] {
				most = max(most, t.Results[0].(float64))
			}
			for c := range of["infless"] {
				for _, system := range names {
					x := of[system][c].Results[0].(float64)
					where := reproduce.Setting(key, at(c))
					r := row(figure, system, "throughput for resources", "of infless's largest", where)
					if p := published[system]; p != nil {
						r = r.WithPublished(p[c], "Figure 18, plotting code")
					}
					o.AddRow(r, x/most)
					o.AddRow(row(figure, system, "throughput for resources", "queries/s for a per cent", where), x)
					if base := of["batch"][c].Results[0].(float64); base > 0 && system == "infless" {
						o.AddRow(row(figure, system, "over batch", "", where).WithPublished(
							published["infless"][c]/published["batch"][c], "Figure 18, plotting code"),
							x/base)
					}
					if base := of["openfaas+"][c].Results[0].(float64); base > 0 && system == "infless" {
						o.AddRow(row(figure, system, "over openfaas+", "", where).WithPublished(
							published["infless"][c]/published["openfaas+"][c], "Figure 18, plotting code"),
							x/base)
					}
				}
			}
		}
		addRows("18a", "functions", byCount, published18a, func(c int) any { return functionCounts[c] })
		addRows("18b", "objective", bySLO, published18b, func(c int) any { return objectives[c] })
		o.Notes = append(o.Notes,
			"Figure 18: served queries/s divided by allocated resources, a thread counting 64/142 of a per cent of "+
				"an accelerator; functions have 100 to 400 queries/s. What the cluster has no room for, or nothing "+
				"serves within its objective, is not counted as served.")
		return nil
	})
	return nil
}
