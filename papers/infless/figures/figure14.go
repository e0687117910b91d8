package infless

import (
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// publishedSaving14 is the share of BATCH's occupied resources that INFless saves (§5.2, Figure 14).
const publishedSaving14 = 0.6

// figure14 shows the resources that ResNet-50 occupies over time, along the periodic trace.
func figure14(run *runner) error {
	names := []string{"batch", "batch on 50 %", "infless", "infless-balanced"}
	a := resnet(osvt[2].slo)
	var tasks []*reproduce.Task
	for _, name := range names {
		tasks = append(tasks, run.simulationTask(contenderNamed(name), a, "periodic"))
	}
	run.Report(func(o *reproduce.Outcome) error {
		load, err := relativeLoad("periodic", run.steps)
		if err != nil {
			return err
		}
		demand := plot.Line{Name: "load", Faint: true}
		for k, part := range load {
			demand.X, demand.Y = append(demand.X, float64(k)*stepSpan.Minutes()), append(demand.Y, part*a.peak)
		}
		var lines []plot.Line
		for e, name := range names {
			took := reproduce.Each(tasks[e], (*traceRun).resources)
			o.AddRow(row("14", name, "occupied", "TFLOP/s", nil), reproduce.Scaled(took,
				1/(1000*float64(run.steps)*stepSpan.Seconds()))...)
			if e >= 2 {
				r := row("14", name, "in parts of batch", "", nil)
				if name == "infless" {
					r = r.WithPublished(1-publishedSaving14, "§5.2, Figure 14")
				}
				o.AddRow(r, ratiosOrZero(took, reproduce.Each(tasks[0], (*traceRun).resources))...)
				o.AddRow(row("14", name, "in parts of batch on 50 %", "", nil),
					ratiosOrZero(took, reproduce.Each(tasks[1], (*traceRun).resources))...)
			}
			o.AddRow(row("14", name, "violations", "%", nil), reproduce.Each(tasks[e], (*traceRun).violations)...)
			o.AddRow(row("14", name, "of thread time", "threads", nil), reproduce.Scaled(
				reproduce.Each(tasks[e], func(f *traceRun) float64 {
					return f.threads
				}),
				1/(float64(run.steps)*stepSpan.Seconds()))...)
			o.AddRow(row("14", name, "of accelerator time", "accelerators", nil),
				reproduce.Scaled(reproduce.Each(tasks[e], func(f *traceRun) float64 {
					return f.percent
				}),
					0.01/(float64(run.steps)*stepSpan.Seconds()))...)
			lines = append(lines, plot.Line{
				Name: name, X: demand.X, Y: reproduce.Scaled(tasks[e].Results[0].(*traceRun).occupied, 0.001),
			})
		}
		addChart(o, "14", "14: what ResNet-50 occupies", 1,
			plot.Panel{
				Name: "occupied (TFLOP/s)", XName: "time (min)", Lines: append(lines[:1:1], lines[2:]...), Low: 0,
				High: math.NaN(),
			},
			plot.Panel{
				Name: "load (queries/s)", XName: "time (min)", Lines: []plot.Line{demand}, Low: 0, High: math.NaN(),
			})
		o.Notes = append(o.Notes, "Figure 14: the chart leaves out BATCH on 50 %, which takes many times as much.")
		return nil
	})
	return nil
}
