package kairos

import (
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

const (
	// Figure 2 shows so many evaluations of pools with at least this throughput, in queries/s (§4).
	annealingEvaluations, minThroughput = 60, 20.0
)

// figure2 runs simulated annealing among pools for RM2 under Ribbon's rule (§4), with all four types. The paper does
// not give its cooling; the default of internal/algo/poolsearch is used.
func figure2(run *runner) error {
	tr := trial{setup: paperSetup("rm2"), system: "fcfs", arrivals: wholeMillis}
	search := run.searchTask(tr, namedSearch{"annealing", annealing}, annealingEvaluations)
	tr.pool = homogeneous(budget)
	base := run.throughputTask(tr, run.fine)
	run.Report(func(o *reproduce.Outcome) error {
		setting := map[string]string{"model": "rm2", "rule": "fcfs", "arrivals": wholeMillis.String()}
		level := reproduce.Scaled(base.rates(), budgetScale(tr.pool, budget))
		var worse, best []float64
		for seed, d := range search.Results {
			e := d.(*searchRun)
			n, under := 0, 0
			for _, r := range e.rates {
				if r >= minThroughput {
					n++
					if r < level[seed] {
						under++
					}
				}
			}
			worse = append(worse, 100*float64(under)/math.Max(float64(n), 1))
			best = append(best, e.rates[e.best()])
		}
		o.AddRow(row("2", "annealing", "evaluated pools worse than the homogeneous", "%", setting).WithPublished(70,
			"§4, about"),
			worse...)
		o.AddRow(row("2", "annealing", "best throughput", "queries/s", setting), best...)
		o.AddRow(row("2", "homogeneous, scaled", "best throughput", "queries/s", setting), level...)
		e := search.Results[0].(*searchRun)
		line, flat := plot.Line{Name: "annealing"}, plot.Line{Name: "homogeneous", Faint: true}
		for i, r := range e.rates {
			x := float64(i + 1)
			line.X, line.Y = append(line.X, x), append(line.Y, 100*(r/level[0]-1))
			flat.X, flat.Y = append(flat.X, x), append(flat.Y, 0)
		}
		addChart(o, "2", "2: pools that annealing evaluates, RM2 under Ribbon's rule", 1,
			plot.Panel{
				Name: "throughput over homogeneous (%)", XName: "evaluation", Lines: []plot.Line{line, flat},
				Low: math.NaN(), High: math.NaN(),
			})
		return nil
	})
	return nil
}
