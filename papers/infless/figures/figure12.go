package infless

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Published for Figure 12a, by system: throughput for occupied resources under the sporadic, periodic and bursty trace,
// relative to INFless's under the bursty one; and INFless's ratios over the baselines (§5.2).
var (
	published12a = map[string][3]float64{
		"openfaas+": {0.10, 0.27, 0.27}, "batch": {0.16, 0.52, 0.46}, "infless": {0.42, 0.93, 1},
	}
	ratios12a = map[string][3]float64{"openfaas+": {4.3, 3.4, 3.6}, "batch": {2.6, 1.8, 2.2}}
)

// inflessIndex is the index of INFless in contenders, after the baselines. burstyIndex is that of the bursty trace in
// traceNames.
const inflessIndex, burstyIndex = 3, 2

const efficiencyRow = "queries in time for what is occupied"

// figure12a measures the throughput for occupied resources along the traces.
func figure12a(run *runner) error {
	tasks := run.traceTasks(contenders)
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		got := make(efficiencies, len(applications))
		for a, app := range applications {
			var panel plot.Panel
			got[a], panel = addEfficiencies12(o, app.name, tasks[a])
			panels = append(panels, panel)
		}
		for t, trace := range traceNames {
			setting := reproduce.Setting("application", "mean of both", "trace", trace)
			for c, x := range contenders {
				r := row("12a", x.name, "in parts of infless's at the bursty trace", "", setting)
				if p, ok := published12a[x.name]; ok {
					r = r.WithPublished(p[t], "Figure 12a, plotting code")
				}
				o.AddRow(r, got.relative(c, t)...)
			}
			for b, base := range contenders[:inflessIndex] {
				for k, x := range contenders[inflessIndex:] {
					r := row("12a", x.name, "over "+base.name, "x", setting)
					if p, ok := ratios12a[base.name]; ok && x.name == "infless" {
						r = r.WithPublished(p[t], "§5.2")
					}
					o.AddRow(r, got.over(inflessIndex+k, b, t)...)
				}
			}
		}
		addChart(o, "12a", "12a: throughput for what is occupied", 1, panels...)
		o.Notes = append(o.Notes, notes12a...)
		return nil
	})
	return nil
}

var notes12a = []string{
	"Figures 12, 14, 15 and Table 4: 200 steps of nine seconds follow the ten-minute means of a trace. Every " +
		"function of OSVT has a peak of 200 queries/s, of Q&A of 600, which the paper does not give. A " +
		"thread weighs 64 GFLOP/s and a per cent of an accelerator 142. INFless plans with execution times a " +
		"tenth longer than measured (§3.3). A start takes one second and one for 50 MB of the model, 1.2 to " +
		"3 s, which is assumed. OpenFaaS+ and BATCH keep instances that a fallen load needs no more for 300 " +
		"s, INFless for 10 s. BATCH takes the parts that serve most for their weights, which have no " +
		"accelerator; in the authors' own runs it had 50 % everywhere, as \"batch on 50 %\".",
	"Figure 12a: a linear program with as many resources as it wants serves every function with the " +
		"configuration that serves most for them, in instances that may be cut to any size.",
}

// efficiencies are queries in time for occupied resources, by application, contender, trace and seed.
type efficiencies [][][][]float64

// relative returns the efficiency of a contender along a trace, relative to that of INFless along the bursty trace: the
// mean over applications, by seed.
func (e efficiencies) relative(contender, trace int) []float64 {
	out := make([]float64, len(e[0][contender][trace]))
	for a := range e {
		for s := range out {
			out[s] += e[a][contender][trace][s] / e[a][inflessIndex][burstyIndex][s] / float64(len(e))
		}
	}
	return out
}

// over returns the efficiency of a contender relative to that of a base along a trace: the mean over applications, by
// seed.
func (e efficiencies) over(contender, base, trace int) []float64 {
	out := make([]float64, len(e[0][contender][trace]))
	for a := range e {
		for s, r := range ratiosOrZero(e[a][contender][trace], e[a][base][trace]) {
			out[s] += r / float64(len(e))
		}
	}
	return out
}

// addEfficiencies12 adds the rows of an application. tasks are by contender and trace, as the efficiencies that it
// returns.
func addEfficiencies12(o *reproduce.Outcome, application string, tasks [][]*reproduce.Task) ([][][]float64,
	plot.Panel) {
	out := make([][][]float64, len(contenders))
	lines := make([]plot.Line, len(contenders), len(contenders)+1)
	bound := plot.Line{Name: "allowed", Faint: true}
	for t, trace := range traceNames {
		setting := reproduce.Setting("application", application, "trace", trace)
		for c, x := range contenders {
			reached := reproduce.Each(tasks[c][t], (*traceRun).efficiency)
			allowed := reproduce.Each(tasks[c][t], func(f *traceRun) float64 { return f.bound })
			out[c] = append(out[c], reached)
			o.AddRow(row("12a", x.name, efficiencyRow, "1/TFLOP", setting), reproduce.Scaled(reached, 1000)...)
			o.AddRow(row("12a", x.name, "of which a linear program allows", "1/TFLOP", setting),
				reproduce.Scaled(allowed, 1000)...)
			o.AddRow(row("12a", x.name, "not in time", "%", setting),
				reproduce.Each(tasks[c][t], (*traceRun).violations)...)
			lines[c].Name = x.name
			lines[c].Y = append(lines[c].Y, 1000*reproduce.Mean(reached))
			if x.name == "infless" {
				bound.Y = append(bound.Y, 1000*reproduce.Mean(allowed))
			}
		}
	}
	return out, reproduce.Bars(application+" (queries in time for a TFLOP)", traceNames, append(lines, bound)...)
}

// traceTasks adds the simulations of all applications and traces. The result is by application, contender and trace.
func (run *runner) traceTasks(contenders []contender) [][][]*reproduce.Task {
	out := make([][][]*reproduce.Task, len(applications))
	for a, app := range applications {
		for _, e := range contenders {
			var byTrace []*reproduce.Task
			for _, trace := range traceNames {
				byTrace = append(byTrace, run.simulationTask(e, app, trace))
			}
			out[a] = append(out[a], byTrace)
		}
	}
	return out
}

// Published for Figure 12b: queries/s for a GFLOP/s, by objective.
var (
	objectives12b = []time.Duration{150 * ms, 200 * ms, 250 * ms, 300 * ms, 350 * ms, 400 * ms}
	published12b  = map[string][]float64{
		"batch":   {0.0048, 0.0052, 0.0054, 0.0054, 0.0054, 0.0054},
		"infless": {0.008, 0.0126, 0.0144, 0.0168, 0.0189, 0.0171},
	}
)

// figure12b measures the same for OSVT with other objectives, along the periodic trace.
func figure12b(run *runner) error {
	names := []string{"batch", "batch on 50 %", "infless", "infless-balanced"}
	var tasks [][]*reproduce.Task
	for _, slo := range objectives12b {
		a := application{name: "OSVT", peak: applications[0].peak}
		for _, f := range osvt {
			a.functions = append(a.functions, function{f.model, slo})
		}
		var bySystem []*reproduce.Task
		for _, name := range names {
			bySystem = append(bySystem, run.simulationTask(contenderNamed(name), a, "periodic"))
		}
		tasks = append(tasks, bySystem)
	}
	run.Report(func(o *reproduce.Outcome) error {
		lines := make([]plot.Line, len(names))
		bound := plot.Line{Name: "allowed", Faint: true}
		for k, slo := range objectives12b {
			at := reproduce.Setting("slo", slo)
			for e, name := range names {
				t := tasks[k][e]
				eff := reproduce.Each(t, (*traceRun).efficiency)
				allowed := reproduce.Each(t, func(f *traceRun) float64 { return f.bound })
				r := row("12b", name, efficiencyRow, "1/TFLOP", at)
				if p, ok := published12b[name]; ok {
					r = r.WithPublished(1000*p[k], "Figure 12b, plotting code")
				}
				o.AddRow(r, reproduce.Scaled(eff, 1000)...)
				o.AddRow(row("12b", name, "of which a linear program allows", "1/TFLOP", at),
					reproduce.Scaled(allowed, 1000)...)
				o.AddRow(row("12b", name, "violations", "%", at), reproduce.Each(t, (*traceRun).violations)...)
				if e >= 2 {
					r := row("12b", name, "over batch", "x", at)
					if name == "infless" {
						r = r.WithPublished(published12b["infless"][k]/published12b["batch"][k],
							"Figure 12b, plotting code")
					}
					o.AddRow(r, ratiosOrZero(eff, reproduce.Each(tasks[k][0], (*traceRun).efficiency))...)
					o.AddRow(row("12b", name, "over batch on 50 %", "x", at),
						ratiosOrZero(eff, reproduce.Each(tasks[k][1], (*traceRun).efficiency))...)
				}
				lines[e].Name = name
				lines[e].X, lines[e].Y = append(lines[e].X, millis(slo)), append(lines[e].Y, 1000*reproduce.Mean(eff))
			}
			bound.X = append(bound.X, millis(slo))
			bound.Y = append(bound.Y, 1000*reproduce.Mean(reproduce.Each(tasks[k][2],
				func(f *traceRun) float64 { return f.bound })))
		}
		addChart(o, "12b", "12b: throughput for what is occupied, by objective", 1,
			plot.Panel{
				Name: "queries in time for a TFLOP", XName: "objective (ms)", Lines: append(lines, bound), Low: 0,
				High: math.NaN(),
			})
		o.Notes = append(o.Notes, fmt.Sprintf(
			"Figure 12b: OSVT along the periodic trace; the paper does not say along which. At %v, ssd leaves next "+
				"to no choice.", objectives12b[0]))
		return nil
	})
	return nil
}
