package kairos

import (
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// variation holds the comparisons of all models in a setup that differs in one thing from Figure 8, and those of Figure
// 8.
type variation struct {
	name        string // key of the rows' setting
	value       string
	budget      float64
	change      func(*setup)
	comparisons []*poolComparison
	baseline    []*poolComparison
}

// addVariations adds the comparisons of variations and of Figure 8, and a report that compares them.
func (run *runner) addVariations(figure string, all []*variation) error {
	for _, x := range all {
		for _, m := range run.varied {
			changed := paperSetup(m.name)
			if x.change != nil {
				x.change(&changed)
			}
			c, err := run.comparePools(changed, wholeMillis, x.budget)
			if err != nil {
				return err
			}
			p, err := run.comparePools(paperSetup(m.name), wholeMillis, budget)
			if err != nil {
				return err
			}
			x.comparisons, x.baseline = append(x.comparisons, c), append(x.baseline, p)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, x := range all {
			for i, c := range x.comparisons {
				setting := map[string]string{x.name: x.value}
				c.addRows(o, figure, setting, nil)
				o.AddRow(row(figure, "kairos", "over homogeneous in Figure 8", "x", setting), x.baseline[i].gain()...)
			}
			plain := plot.Line{Name: "kairos in Figure 8", Faint: true}
			for _, c := range x.baseline {
				plain.Y = append(plain.Y, reproduce.Mean(c.gain()))
			}
			p := gainPanel(x.comparisons)
			p.Name = x.name + " " + x.value + ": " + p.Name
			p.Lines = append(p.Lines, plain)
			panels = append(panels, p)
		}
		addChart(o, figure, figure+": throughput over the best homogeneous pool", 1, panels...)
		return nil
	})
	return nil
}

// figure15 varies Figure 8: four times the budget, and QoS targets 20 % higher (§8.6).
func figure15(run *runner) error {
	return run.addVariations("15", []*variation{
		{name: "budget", value: "10 $/h", budget: 4 * budget},
		{name: "QoS", value: "x 1.2", budget: budget, change: func(s *setup) { s.qos = 1.2 }},
	})
}

// figure16 varies Figure 8: Gaussian sizes, and latencies that deviate by 5 % from their prediction (§8.6). The paper
// says 5 % variance; here it is the standard deviation.
func figure16(run *runner) error {
	var all []*variation
	for _, to := range gaussians {
		all = append(all, &variation{name: "sizes", value: to.String(), budget: budget, change: func(s *setup) {
			s.sizes = to
		}})
	}
	return run.addVariations("16", append(all, &variation{name: "noise", value: "5 %", budget: budget,
		change: func(s *setup) {
			s.noise = 0.05
		}}))
}
