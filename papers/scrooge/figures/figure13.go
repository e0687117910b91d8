package scrooge

import (
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published13 has what §4.3 and §4.4 say of the tightest and the loosest objective: the cost without spatial
// multiplexing over that with it (a range for traffic, ranges of savings for the others), and the mean throughput of a
// model with it.
var published13 = map[string]struct {
	model  string
	ratios [2]float64
	rates  [2]float64
}{
	"traffic": {"inception", [2]float64{1.17, 1.32}, [2]float64{24.9, 33.6}},
	"face":    {"prnet", [2]float64{1 / (1 - .5790), 1 / (1 - .5828)}, [2]float64{239.9, 240.8}},
	"tracker": {"mobilenet", [2]float64{1 / (1 - .2916), 1 / (1 - .3910)}, [2]float64{27.9, 38.2}},
}

// figure13 shows the value of spatial multiplexing.
func figure13(run *runner) error {
	both := make(map[string][2][]*reproduce.Task)
	for _, name := range nexusGraphs {
		g := run.graph(name)
		var t [2][]*reproduce.Task
		for _, by := range relaxations {
			t[0] = append(t[0], run.costTask(g, scaleDuration(g.objective, by), false))
			t[1] = append(t[1], run.costTask(g, scaleDuration(g.objective, by), true))
		}
		both[name] = t
	}
	run.Report(func(o *reproduce.Outcome) error {
		ratio := plot.Panel{
			Name: "cost without spatial multiplexing over that with it", XName: "objective (ms)", Low: 1,
			High: math.NaN(),
		}
		rates := plot.Panel{Name: "items/s of a machine", XName: "objective (ms)", Low: 0, High: math.NaN()}
		for _, name := range nexusGraphs {
			g, known := run.graph(name), published13[name]
			stage := 0
			for k, s := range g.stages {
				if s.model.name == known.model {
					stage = k
				}
			}
			cost := func(c *sessionCost) float64 { return c.cost }
			rate := func(c *sessionCost) float64 { return c.rates[stage] }
			lines := []plot.Line{
				{Name: name}, {Name: known.model}, {Name: known.model + ", one batch at a time", Faint: true},
			}
			for k, by := range relaxations {
				with, without := both[name][0][k], both[name][1][k]
				objective := scaleDuration(g.objective, by)
				at := reproduce.Setting("graph", name, "objective", objective)
				x := reproduce.Ratios(reproduce.Each(without, cost), reproduce.Each(with, cost))
				r := row("13a", "scrooge-single", "cost over scrooge's", "", at)
				y := row("13b", "scrooge", "throughput of a machine with "+known.model, "items/s", at)
				// The paper gives ranges of ratios without their objectives. They are assumed to rise with them, as
				// throughputs do.
				switch k {
				case 0:
					r, y = r.WithPublished(known.ratios[0], "§4.4: lowest of a range"),
						y.WithPublished(known.rates[0], "§4.3, Figure 13b")
				case len(relaxations) - 1:
					r, y = r.WithPublished(known.ratios[1], "§4.4: highest of a range"),
						y.WithPublished(known.rates[1], "§4.3, Figure 13b")
				}
				o.AddRow(r, x...)
				o.AddRow(y, reproduce.Each(with, rate)...)
				o.AddRow(row("13b", "scrooge-single", "throughput of a machine with "+known.model, "items/s", at),
					reproduce.Each(without, rate)...)
				for i, v := range []float64{x[0], reproduce.Each(with, rate)[0], reproduce.Each(without, rate)[0]} {
					lines[i].X, lines[i].Y = append(lines[i].X, float64(objective)/float64(ms)), append(lines[i].Y, v)
				}
			}
			ratio.Lines, rates.Lines = append(ratio.Lines, lines[0]), append(rates.Lines, lines[1:]...)
		}
		addChart(o, "13", "13: what spatial multiplexing is worth", 1, ratio, rates)
		return nil
	})
	return nil
}
