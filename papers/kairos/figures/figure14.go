package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure14 measures the pools of Figure 13 under every rule, for RM2 (§8.5).
func figure14(run *runner) error {
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		return err
	}
	x, err := s.topPools()
	if err != nil {
		return err
	}
	most, err := s.oracle()
	if err != nil {
		return err
	}
	oracle, rules := most.rates[most.best], comparedRules()
	ask := func(r planner.Ranked, rule string) trial {
		return trial{setup: paperSetup("rm2"), pool: pool(r.Pool), system: rule, arrivals: wholeMillis}
	}
	all := make(map[trial]throughputs)
	for _, r := range x.ranked {
		for _, rule := range rules {
			all[ask(r, rule)] = run.throughputTask(ask(r, rule), run.coarse)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		lines := []plot.Line{{Name: "upper bound", Faint: true}, {Name: "oracle"}}
		for _, rule := range rules {
			lines = append(lines, plot.Line{Name: rule})
		}
		for i, r := range x.ranked {
			setting := map[string]string{
				"model": "rm2", "arrivals": wholeMillis.String(), "pool": fmt.Sprintf("%d. %v", i+1, pool(r.Pool)),
			}
			note := func(n int, y float64) {
				lines[n].X, lines[n].Y = append(lines[n].X, float64(i+1)), append(lines[n].Y, y)
			}
			o.AddRow(row("14", "upper bound", throughputRow, "queries/s", setting), r.Bound)
			note(0, r.Bound)
			note(1, oracle)
			for n, rule := range rules {
				rates := all[ask(r, rule)].rates()
				o.AddRow(row("14", rule, throughputRow, "queries/s", setting), rates...)
				note(n+2, reproduce.Mean(rates))
			}
		}
		addChart(o, "14", "14: RM2 by pool and rule", 1, plot.Panel{
			Name: "throughput (queries/s)", XName: "by upper bound", Lines: lines, Low: 0, High: math.NaN(),
		})
		return nil
	})
	return nil
}
