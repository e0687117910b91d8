package kairos

import (
	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// figure3 runs the pools of Figure 1 under every rule, and the oracle on them (§4). The paper shows the first three
// rules and the oracle, without numbers in the text.
func figure3(l *lab) error {
	s, err := l.service(at("rm2"))
	if err != nil {
		return err
	}
	rules := rules()
	oracle := s.orcl()
	all := make(map[question]measured)
	ask := func(p pool, rule string, by arrivals) question {
		return question{setup: at("rm2"), pool: p, system: rule, arrivals: by}
	}
	for _, by := range both {
		for _, p := range mixed {
			for _, rule := range rules {
				q := ask(p, rule, by)
				all[q] = l.want(q, l.fine)
			}
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, by := range both {
			lines := make([]plot.Line, len(rules)+1)
			var groups []string
			for _, p := range mixed {
				setting := map[string]string{"model": "rm2", "pool": p.String(), "arrivals": by.String()}
				groups = append(groups, p.String())
				for n, rule := range rules {
					m := all[ask(p, rule, by)]
					level(o, "3", rule, setting, m.allowed())
					lines[n].Name = rule
					lines[n].Y = append(lines[n].Y, mean(m.rates()))
				}
				most := oracle.Of(p.of())
				o.Add(row("3", "oracle", throughputRow, "queries/s", setting), most)
				lines[len(rules)].Name, lines[len(rules)].Faint = "oracle", true
				lines[len(rules)].Y = append(lines[len(rules)].Y, most)
			}
			panels = append(panels, bars("throughput (queries/s), "+by.String(), groups, lines...))
		}
		chart(o, "3", "3: RM2 by pool and rule", 2, panels...)
		return nil
	})
	return nil
}
