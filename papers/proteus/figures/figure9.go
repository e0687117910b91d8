package proteus

import (
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// figure9 shows Proteus by model family (§6.7), and beside it the goal that the paper leaves open (§7): the smallest
// accuracy of a family.
func figure9(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	t := run.trace(heavyTrace)
	names := []string{"proteus", "proteus-fair"}
	var tasks []*task
	for _, name := range names {
		tasks = append(tasks, run.simulationTask(name+" on "+t.name, newJob(w, system(name), t)))
	}
	run.Report(func(o *reproduce.Outcome) error {
		c := &plot.Chart{Title: "Proteus, Figure 9: " + t.name, Panels: []plot.Panel{
			{
				Name: "Effective accuracy (%)", Low: math.NaN(), High: 100,
			}, {Name: "SLO violations (%)", Low: 0, High: math.NaN()},
		}}
		for i := range c.Panels {
			for _, a := range w.Spec.Apps {
				c.Panels[i].Groups = append(c.Panels[i].Groups, a.Name)
			}
		}
		for i, name := range names {
			accuracy, missed := plot.Line{Name: name}, plot.Line{Name: name}
			for a := range w.Spec.Apps {
				setting := map[string]string{"trace": t.name, "family": w.Spec.Apps[a].Name}
				addRow := func(quantity, unit string, f func(x familyResult) float64) []float64 {
					v := tasks[i].each(func(r *result) float64 { return f(r.family(serving.AppID(a))) })
					o.AddRow(row("9", name, quantity, unit, setting), v...)
					return v
				}
				addRow("throughput", "/s", func(x familyResult) float64 { return x.throughput })
				accuracy.Y = append(accuracy.Y, reproduce.Mean(addRow("effective accuracy", "%",
					func(x familyResult) float64 {
						return 100 * x.accuracy
					})))
				addRow("maximum accuracy drop", "points", func(x familyResult) float64 { return 100 * x.drop })
				missed.Y = append(missed.Y, reproduce.Mean(addRow("SLO violations", "%", func(x familyResult) float64 {
					return 100 * x.violations
				})))
			}
			c.Panels[0].Lines, c.Panels[1].Lines = append(c.Panels[0].Lines, accuracy),
				append(c.Panels[1].Lines, missed)
		}
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-9", Drawing: c})
		return nil
	})
	return nil
}

// familyResult is the result of a run for one app.
type familyResult struct{ throughput, accuracy, drop, violations float64 }

func (r *result) family(a serving.AppID) familyResult {
	x := &r.Report.Apps[a]
	out := familyResult{throughput: x.Throughput, violations: x.ViolationRatio}
	if x.EffectiveAccuracy != nil {
		out.accuracy = *x.EffectiveAccuracy
	}
	if x.MaxAccuracyDrop != nil {
		out.drop = *x.MaxAccuracyDrop
	}
	return out
}
