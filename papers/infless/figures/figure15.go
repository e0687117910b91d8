package infless

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published15a is the mean share of violations in per cent (§5.2).
const published15a = 3.1

// figure15a shows the share of the queries that are not answered in time, along the traces.
func figure15a(run *runner) error {
	contenders := append(slices.Clone(contenders), contender{
		name: "infless, starting at once", system: "infless", offset: predictionOffset, instantStarts: true,
	})
	tasks := run.traceTasks(contenders)
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		means := make([][]float64, len(contenders))
		for e := range means {
			means[e] = make([]float64, run.Seeds)
		}
		for a, app := range applications {
			lines := make([]plot.Line, len(contenders))
			for t, trace := range traceNames {
				for e, x := range contenders {
					v := reproduce.Each(tasks[a][e][t], (*traceRun).violations)
					o.AddRow(row("15a", x.name, "violations", "%", reproduce.Setting("application", app.name, "trace",
						trace)), v...)
					lines[e].Name = x.name
					lines[e].Y = append(lines[e].Y, reproduce.Mean(v))
					for s := range v {
						means[e][s] += v[s] / float64(len(applications)*len(traceNames))
					}
				}
			}
			panels = append(panels, reproduce.Bars(app.name+": violations (%)", traceNames, lines...))
		}
		for e, x := range contenders {
			r := row("15a", x.name, "violations", "%", reproduce.Setting("application", "mean of both", "trace",
				"mean of all"))
			if x.name == "infless" {
				r = r.WithPublished(published15a, "§5.2")
			}
			o.AddRow(r, means[e]...)
		}
		addChart(o, "15a", "15a: violations", 1, panels...)
		o.Notes = append(o.Notes,
			"Figure 15a: ten minutes of a trace pass within nine seconds, in steps. A start of 3 s is a third of "+
				"that, which no system can make up for after a silence; how much that is shows INFless with starts "+
				"that take no time. Instances that linger for 300 s, which are more than five hours of the trace, "+
				"hide it.")
		return nil
	})
	return nil
}

// published15b are mean queueing and execution times in ms, of the authors' own samples by instance.
var published15b = []struct {
	slo    time.Duration
	queue  float64
	runs   float64
	figure string
}{{150 * ms, 70.5, 59.4, "15b"}, {350 * ms, 134.0, 97.2, "15c"}}

// figure15b splits the latency of ResNet-50 into its components, along the periodic trace.
func figure15b(run *runner) error {
	names := []string{"infless", "infless-balanced"}
	var tasks [][]*reproduce.Task
	for _, p := range published15b {
		var bySystem []*reproduce.Task
		for _, name := range names {
			bySystem = append(bySystem, run.simulationTask(contenderNamed(name), resnet(p.slo), "periodic"))
		}
		tasks = append(tasks, bySystem)
	}
	run.Report(func(o *reproduce.Outcome) error {
		parts := []string{"cold start", "queueing", "execution"}
		var panels []plot.Panel
		for k, p := range published15b {
			var lines []plot.Line
			for e, name := range names {
				line := plot.Line{Name: name}
				for n, what := range parts {
					v := reproduce.Each(tasks[k][e], func(f *traceRun) float64 {
						return f.components[n] / max(f.served,
							1)
					})
					r := row("15b", name, what, "ms", reproduce.Setting("slo", p.slo))
					if published := [...]float64{0, p.queue, p.runs}[n]; name == "infless" && published > 0 {
						r = r.WithPublished(published, "Figure "+p.figure+", the authors' samples")
					}
					o.AddRow(r, v...)
					line.Y = append(line.Y, reproduce.Mean(v))
				}
				o.AddRow(row("15b", name, "violations", "%", reproduce.Setting("slo", p.slo)),
					reproduce.Each(tasks[k][e], (*traceRun).violations)...)
				lines = append(lines, line)
			}
			panels = append(panels, reproduce.Bars("objective "+p.slo.String()+" (ms)", parts, lines...))
		}
		addChart(o, "15b", "15b: what latency is made of", 2, panels...)
		return nil
	})
	return nil
}
