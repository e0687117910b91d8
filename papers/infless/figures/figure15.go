package infless

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published15a is the mean share of violations in per cent (§5.2).
const published15a = 3.1

// figure15a shows the share of the queries that are not answered in time, along the traces.
func figure15a(run *runner, f *reproduce.Sheet) error {
	contenders := append(slices.Clone(contenders), contender{
		name: "infless, starting at once", system: "infless", offset: predictionOffset, instantStarts: true,
	})
	c := f.Chart("15a", title("15a: violations"), 1)
	all := make([][]reproduce.Values, len(contenders))
	for _, app := range applications {
		panel := c.Bars(app.name + ": violations (%)")
		for _, trace := range traceNames {
			for e, x := range contenders {
				v := run.simulation(x, app, trace).Each((*traceRun).violations)
				f.At("application", app.name, "trace", trace).Row(x.name, "violations", "%", v)
				panel.Bar(x.name, trace, v)
				all[e] = append(all[e], v)
			}
		}
	}
	for e, x := range contenders {
		row := f.At("application", "mean of both", "trace", "mean of all").
			Row(x.name, "violations", "%", reproduce.MeanOf(all[e]...))
		if x.name == "infless" {
			row.Published(published15a, "§5.2")
		}
	}
	f.Note("Figure 15a: ten minutes of a trace pass within nine seconds, in steps. A start of 3 s is a third of " +
		"that, which no system can make up for after a silence; how much that is shows INFless with starts " +
		"that take no time. Instances that linger for 300 s, which are more than five hours of the trace, " +
		"hide it.")
	return nil
}

// published15b are mean queueing and execution times in ms, of the authors' own samples by instance.
var published15b = []struct {
	slo    time.Duration
	parts  map[string]float64
	figure string
}{
	{150 * ms, map[string]float64{"queueing": 70.5, "execution": 59.4}, "15b"},
	{350 * ms, map[string]float64{"queueing": 134.0, "execution": 97.2}, "15c"},
}

// figure15b splits the latency of ResNet-50 into its components, along the periodic trace.
func figure15b(run *runner, f *reproduce.Sheet) error {
	c := f.Chart("15b", title("15b: what latency is made of"), 2)
	for _, p := range published15b {
		at, panel := f.At("slo", p.slo), c.Bars("objective "+p.slo.String()+" (ms)")
		for _, x := range []contender{contenderNamed("infless"), contenderNamed("infless-balanced")} {
			r := run.simulation(x, resnet(p.slo), "periodic")
			for n, what := range []string{"cold start", "queueing", "execution"} {
				v := r.Each(func(f *traceRun) float64 { return f.components[n] / max(f.served, 1) })
				row := at.Row(x.name, what, "ms", v)
				if x.name == "infless" {
					row.Published(reproduce.In(p.parts, what), "Figure "+p.figure+", the authors' samples")
				}
				panel.Bar(x.name, what, v)
			}
			at.Row(x.name, "violations", "%", r.Each((*traceRun).violations))
		}
	}
	return nil
}
