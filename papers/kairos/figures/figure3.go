package kairos

import (
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure3 measures the pools of Figure 1 under every rule and under the oracle (§4). The paper shows the first three
// rules and the oracle, without numbers in the text.
func figure3(run *runner) error {
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		return err
	}
	rules := comparedRules()
	oracle := s.newOracle()
	all := make(map[trial]throughputs)
	ask := func(p pool, rule string, by arrivals) trial {
		return trial{setup: paperSetup("rm2"), pool: p, system: rule, arrivals: by}
	}
	for _, by := range bothArrivals {
		for _, p := range mixedPools {
			for _, rule := range rules {
				tr := ask(p, rule, by)
				all[tr] = run.throughputTask(tr, run.fine)
			}
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, by := range bothArrivals {
			lines := make([]plot.Line, len(rules)+1)
			var groups []string
			for _, p := range mixedPools {
				setting := map[string]string{"model": "rm2", "pool": p.String(), "arrivals": by.String()}
				groups = append(groups, p.String())
				for n, rule := range rules {
					m := all[ask(p, rule, by)]
					addThroughput(o, "3", rule, setting, m.bySeed())
					lines[n].Name = rule
					lines[n].Y = append(lines[n].Y, reproduce.Mean(m.rates()))
				}
				most := oracle.Of(p.counts())
				o.AddRow(row("3", "oracle", throughputRow, "queries/s", setting), most)
				lines[len(rules)].Name, lines[len(rules)].Faint = "oracle", true
				lines[len(rules)].Y = append(lines[len(rules)].Y, most)
			}
			panels = append(panels, reproduce.Bars("throughput (queries/s), "+by.String(), groups, lines...))
		}
		addChart(o, "3", "3: RM2 by pool and rule", 2, panels...)
		return nil
	})
	return nil
}
