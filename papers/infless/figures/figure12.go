package infless

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Published for Figure 12a, by system: throughput for occupied resources under the sporadic, periodic and bursty trace,
// relative to INFless's under the bursty one; and INFless's ratios over the baselines (§5.2).
var (
	published12a = map[string][]float64{
		"openfaas+": {0.10, 0.27, 0.27}, "batch": {0.16, 0.52, 0.46}, "infless": {0.42, 0.93, 1},
	}
	ratios12a = map[string][]float64{"openfaas+": {4.3, 3.4, 3.6}, "batch": {2.6, 1.8, 2.2}}
)

const (
	efficiencyRow = "queries in time for what is occupied"
	allowedRow    = "of which a linear program allows"
)

// efficiencies are the quantities of Figure 12, of which 12b calls the last one violations.
var efficiencies = []reproduce.Quantity[*traceRun]{
	{Name: efficiencyRow, Unit: "1/TFLOP", Of: func(f *traceRun) float64 { return 1000 * f.efficiency() }},
	{Name: allowedRow, Unit: "1/TFLOP", Of: func(f *traceRun) float64 { return 1000 * f.bound }},
	{Name: "not in time", Unit: "%", Of: (*traceRun).violations},
}

// figure12a measures the throughput for occupied resources along the traces.
func figure12a(run *runner, f *reproduce.Sheet) error {
	c := f.Chart("12a", title("12a: throughput for what is occupied"), 1)
	for _, app := range applications {
		panel := c.Bars(app.name + " (queries in time for a TFLOP)")
		for _, trace := range traceNames {
			at := f.At("application", app.name, "trace", trace)
			for _, x := range contenders {
				r := run.simulation(x, app, trace)
				reproduce.AddRows(at, x.name, r, efficiencies)
				panel.Bar(x.name, trace, r.Each(efficiencies[0].Of))
			}
			panel.Bar("allowed", trace, run.simulation(contenderNamed("infless"), app, trace).Each(efficiencies[1].Of))
		}
		panel.Faint("allowed")
	}
	// ofBoth returns the mean over applications of a contender's efficiency along a trace by that of a base.
	ofBoth := func(x contender, trace string, base contender, baseTrace string,
		by func(a, b reproduce.Values) reproduce.Values) reproduce.Values {
		return overApplications(func(a application) reproduce.Values {
			return by(run.simulation(x, a, trace).Each((*traceRun).efficiency),
				run.simulation(base, a, baseTrace).Each((*traceRun).efficiency))
		})
	}
	for t, trace := range traceNames {
		at := f.At("application", "mean of both", "trace", trace)
		for _, x := range contenders {
			at.Row(x.name, "in parts of infless's at the bursty trace", "",
				ofBoth(x, trace, contenderNamed("infless"), "bursty", reproduce.Values.Over)).
				Published(reproduce.InList(published12a, x.name, t), "Figure 12a, plotting code")
		}
		for _, base := range contenders[:baselines] {
			for _, x := range contenders[baselines:] {
				e := at.Row(x.name, "over "+base.name, "x", ofBoth(x, trace, base, trace, over))
				if x.name == "infless" {
					e.Published(reproduce.InList(ratios12a, base.name, t), "§5.2")
				}
			}
		}
	}
	f.Note(notes12a...)
	return nil
}

// overApplications returns the mean over the applications.
func overApplications(of func(application) reproduce.Values) reproduce.Values {
	var list []reproduce.Values
	for _, a := range applications {
		list = append(list, of(a))
	}
	return reproduce.MeanOf(list...)
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

// Published for Figure 12b: queries/s for a GFLOP/s, by objective.
var (
	objectives12b = []time.Duration{150 * ms, 200 * ms, 250 * ms, 300 * ms, 350 * ms, 400 * ms}
	published12b  = map[string][]float64{
		"batch":   {0.0048, 0.0052, 0.0054, 0.0054, 0.0054, 0.0054},
		"infless": {0.008, 0.0126, 0.0144, 0.0168, 0.0189, 0.0171},
	}
)

// figure12b measures the same for OSVT with other objectives, along the periodic trace.
func figure12b(run *runner, f *reproduce.Sheet) error {
	const source = "Figure 12b, plotting code"
	panel := f.Chart("12b", title("12b: throughput for what is occupied, by objective"), 1).
		Panel("queries in time for a TFLOP", "objective (ms)", 0, reproduce.Auto)
	for k, slo := range objectives12b {
		a := application{name: "OSVT", peak: applications[0].peak}
		for _, x := range osvt {
			a.functions = append(a.functions, function{x.model, slo})
		}
		at := f.At("slo", slo)
		for _, x := range resnetContenders {
			r := run.simulation(x, a, "periodic")
			reproduce.AddRows(at, x.name, r, efficiencies[:2])[efficiencyRow].
				Published(1000*reproduce.InList(published12b, x.name, k), source)
			at.Row(x.name, "violations", "%", r.Each((*traceRun).violations))
			run.addOverBatch(at, "over ", "x", x, a, (*traceRun).efficiency,
				published12b["infless"][k]/published12b["batch"][k], source)
			panel.Point(x.name, millis(slo), r.Each(efficiencies[0].Of))
		}
		allowed := run.simulation(contenderNamed("infless"), a, "periodic").Each(efficiencies[1].Of)
		panel.Point("allowed", millis(slo), allowed)
	}
	panel.Faint("allowed")
	f.Note(fmt.Sprintf("Figure 12b: OSVT along the periodic trace; the paper does not say along which. At %v, ssd "+
		"leaves next to no choice.", objectives12b[0]))
	return nil
}

// addOverBatch compares a contender that is not BATCH with both forms of it. published is of INFless over the first.
func (run *runner) addOverBatch(at reproduce.Place, what, unit string, x contender, a application,
	number func(*traceRun) float64, published float64, source string) {
	if x.system == "batch" {
		return
	}
	for _, base := range resnetContenders[:2] {
		e := at.Row(x.name, what+base.name, unit, over(run.simulation(x, a, "periodic").Each(number),
			run.simulation(base, a, "periodic").Each(number)))
		if x.name == "infless" && base.name == "batch" {
			e.Published(published, source)
		}
	}
}
