package infless

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
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
		// by application, contender, trace and seed
		got := make([][][][]float64, len(applications))
		for a, app := range applications {
			got[a] = make([][][]float64, len(contenders))
			lines := make([]plot.Line, len(contenders), len(contenders)+1)
			bound := plot.Line{Name: "allowed", Faint: true}
			for t, trace := range traceNames {
				at := reproduce.Setting("application", app.name, "trace", trace)
				for e, x := range contenders {
					eff := reproduce.Each(tasks[a][e][t], (*traceRun).efficiency)
					may := reproduce.Each(tasks[a][e][t], func(f *traceRun) float64 { return f.bound })
					got[a][e] = append(got[a][e], eff)
					o.AddRow(row("12a", x.name, efficiencyRow, "1/TFLOP", at), reproduce.Scaled(eff, 1000)...)
					o.AddRow(row("12a", x.name, "of which a linear program allows", "1/TFLOP", at),
						reproduce.Scaled(may, 1000)...)
					lines[e].Name = x.name
					lines[e].Y = append(lines[e].Y, 1000*reproduce.Mean(eff))
					if x.name == "infless" {
						bound.Y = append(bound.Y, 1000*reproduce.Mean(may))
					}
				}
			}
			panels = append(panels, reproduce.Bars(app.name+" (queries in time for a TFLOP)", traceNames,
				append(lines, bound)...))
		}
		for t, trace := range traceNames {
			at := reproduce.Setting("application", "mean of both", "trace", trace)
			for e, x := range contenders {
				// mean over applications, each relative to INFless under the bursty trace
				norm := make([]float64, run.Seeds)
				for a := range applications {
					for s := range norm {
						norm[s] += got[a][e][t][s] / got[a][inflessIndex][burstyIndex][s] / float64(len(applications))
					}
				}
				r := row("12a", x.name, "in parts of infless's at the bursty trace", "", at)
				if p, ok := published12a[x.name]; ok {
					r = r.WithPublished(p[t], "Figure 12a, plotting code")
				}
				o.AddRow(r, norm...)
			}
			for b, base := range contenders[:inflessIndex] {
				for e, x := range contenders[inflessIndex:] {
					ratio := make([]float64, run.Seeds)
					for a := range applications {
						for s, r := range ratiosOrZero(got[a][inflessIndex+e][t], got[a][b][t]) {
							ratio[s] += r / float64(len(applications))
						}
					}
					r := row("12a", x.name, "over "+base.name, "x", at)
					if p, ok := ratios12a[base.name]; ok && x.name == "infless" {
						r = r.WithPublished(p[t], "§5.2")
					}
					o.AddRow(r, ratio...)
				}
			}
		}
		addChart(o, "12a", "12a: throughput for what is occupied", 1, panels...)
		o.Notes = append(o.Notes,
			"Figures 12, 14, 15 and Table 4: 200 steps of nine seconds follow the ten-minute means of a trace. Every "+
				"function of OSVT has a peak of 200 queries/s, of Q&A of 600, which the paper does not give. A "+
				"thread weighs 64 GFLOP/s and a per cent of an accelerator 142. INFless plans with execution times a "+
				"tenth longer than measured (§3.3). A start takes one second and one for 50 MB of the model, 1.2 to "+
				"3 s, which is assumed. OpenFaaS+ and BATCH keep instances that a fallen load needs no more for 300 "+
				"s, INFless for 10 s. BATCH takes the parts that serve most for their weights, which have no "+
				"accelerator; in the authors' own runs it had 50 % everywhere, as \"batch on 50 %\".",
			"Figure 12a: a linear program with as many resources as it wants serves every function with the "+
				"configuration that serves most for them, in instances that may be cut to any size.")
		return nil
	})
	return nil
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
				r := row("12b", name, efficiencyRow, "1/TFLOP", at)
				if p, ok := published12b[name]; ok {
					r = r.WithPublished(1000*p[k], "Figure 12b, plotting code")
				}
				o.AddRow(r, reproduce.Scaled(eff, 1000)...)
				o.AddRow(row("12b", name, "of which a linear program allows", "1/TFLOP", at),
					reproduce.Scaled(reproduce.Each(t, func(f *traceRun) float64 {
						return f.bound
					}),

						1000)...)
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
