package scrooge

import (
	"fmt"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published12 is the largest fall of the cost when the objective is relaxed from 400 to 1,000 ms, in per cent (§4.3).
// The last four are those that the text gives "respectively".
var published12 = map[string]float64{
	"traffic": 18.14, "face": 4.63, "tracker": 25.59, "pose": 39.20, "caption": 6.29, "audio": 4.87, "actdet": 12.54,
}

// figure12 shows the cost by objective.
func figure12(run *runner) error {
	tasks := make(map[string][]*reproduce.Task)
	for i := range run.graphs {
		g := &run.graphs[i]
		for _, by := range relaxations {
			tasks[g.name] = append(tasks[g.name], run.costTask(g, scaleDuration(g.objective, by), false))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var groups []string
		for _, by := range relaxations {
			groups = append(groups, fmt.Sprintf("x %v", by))
		}
		panel := reproduce.Bars("cost over that at the graph's own objective", groups)
		for i := range run.graphs {
			g := &run.graphs[i]
			t := tasks[g.name]
			cost := func(c *sessionCost) float64 { return c.cost }
			line := plot.Line{Name: g.name}
			for k, by := range relaxations {
				at := reproduce.Setting("graph", g.name, "objective", scaleDuration(g.objective, by))
				ratio := reproduce.Ratios(reproduce.Each(t[k], cost), reproduce.Each(t[0], cost))
				o.AddRow(row("12", "scrooge", "cost", "$/h", at), reproduce.Each(t[k], cost)...)
				saved := make([]float64, len(ratio))
				for s := range ratio {
					saved[s] = 100 * (1 - ratio[s])
				}
				r := row("12", "scrooge", "saved", "%", at)
				if k == len(relaxations)-1 {
					r = r.WithPublished(published12[g.name], "§4.3, Figure 12")
				}
				o.AddRow(r, saved...)
				line.Y = append(line.Y, ratio[0])
			}
			panel.Lines = append(panel.Lines, line)
		}
		addChart(o, "12", "12: cost by objective", 1, panel)
		return nil
	})
	return nil
}
