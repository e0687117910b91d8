package infless

import (
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// publishedSaving14 is the share of BATCH's occupied resources that INFless saves (§5.2, Figure 14).
const publishedSaving14 = 0.6

// resnetContenders are the systems that Figures 12b and 14 compare.
var resnetContenders = []contender{
	contenderNamed("batch"), contenderNamed("batch on 50 %"), contenderNamed("infless"),
	contenderNamed("infless-balanced"),
}

// figure14 shows the resources that ResNet-50 occupies over time, along the periodic trace.
func figure14(run *runner, f *reproduce.Sheet) error {
	a := resnet(osvt[2].slo)
	load, err := relativeLoad("periodic", run.steps)
	if err != nil {
		return err
	}
	minutes := make([]float64, len(load))
	for k := range load {
		minutes[k] = float64(k) * stepSpan.Minutes()
	}
	c := f.Chart("14", title("14: what ResNet-50 occupies"), 1)
	occupied := c.Panel("occupied (TFLOP/s)", "time (min)", 0, reproduce.Auto)
	demand := c.Panel("load (queries/s)", "time (min)", 0, reproduce.Auto).Faint("load")
	demand.Curve("load", func() (x, y []float64) { return minutes, reproduce.Scaled(load, a.peak) })
	span := float64(run.steps) * stepSpan.Seconds()
	at := f.At()
	for _, x := range resnetContenders {
		r := run.simulation(x, a, "periodic")
		at.Row(x.name, "occupied", "TFLOP/s", r.Each((*traceRun).resources).Times(1/(1000*span)))
		run.addOverBatch(at, "in parts of ", "", x, a, (*traceRun).resources, 1-publishedSaving14, "§5.2, Figure 14")
		at.Row(x.name, "violations", "%", r.Each((*traceRun).violations))
		at.Row(x.name, "of thread time", "threads",
			r.Each(func(f *traceRun) float64 { return f.threads }).Times(1/span))
		at.Row(x.name, "of accelerator time", "accelerators",
			r.Each(func(f *traceRun) float64 { return f.percent }).Times(0.01/span))
		if x.name != "batch on 50 %" {
			occupied.Curve(x.name, func() ([]float64, []float64) {
				return minutes, reproduce.Scaled(r.First().occupied, 0.001)
			})
		}
	}
	f.Note("Figure 14: the chart leaves out BATCH on 50 %, which takes many times as much.")
	return nil
}
