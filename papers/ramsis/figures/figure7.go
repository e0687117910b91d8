package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure7 compares the promises of policies (§5.1) with simulation, under constant load with 40, 60 and 80 workers
// (§7.3.1). It shows every system whose policies make promises.
func figure7(run *runner) error {
	var all []pointSeries
	for _, workers := range []int{40, 60, 80} {
		at := a4Setup
		at.workers = workers
		points, err := run.points(run.rates, func(x float64) (setup, *load, error) {
			on, err := run.constantLoad(x)
			return at, on, err
		})
		if err != nil {
			return err
		}
		all = append(all, pointSeries{at, points})
	}
	run.Report(func(o *reproduce.Outcome) error {
		for i, s := range run.systems {
			c := &plot.Chart{Title: "RAMSIS, Figure 7: " + s.Name + ", promised and simulated", Columns: len(all)}
			var below []plot.Panel
			promised := false
			for _, x := range all {
				up := plot.Panel{
					Name: fmt.Sprintf("%d workers: accuracy (%%)", x.at.workers), XName: "load (queries/s)",
					Low: math.NaN(), High: math.NaN(),
				}
				down := plot.Panel{
					Name: fmt.Sprintf("%d workers: violations (%%)", x.at.workers), XName: "load (queries/s)", Low: 0,
					High: math.NaN(),
				}
				lines := [4]plot.Line{{Name: "promised"}, {Name: "simulated"}, {Name: "promised"}, {Name: "simulated"}}
				for _, p := range x.points {
					promise := p.systems[i].result(0).promise
					if promise == nil || promise.Violation < 0 {
						continue
					}
					promised = true
					setting := map[string]string{"workers": fmt.Sprint(x.at.workers), "load": formatNumber(p.x)}
					a, v := p.systems[i].each(accuracy), p.systems[i].each(violations)
					addRow(o, row("7", s.Name, "accuracy, promised", "%", setting), 100*promise.Accuracy)
					addRow(o, row("7", s.Name, "accuracy, simulated", "%", setting), a...)
					addRow(o, row("7", s.Name, "violations, promised", "%", setting), 100*promise.Violation)
					addRow(o, row("7", s.Name, "violations, simulated", "%", setting), v...)
					for k, y := range []float64{100 * promise.Accuracy, reproduce.Mean(a), 100 * promise.Violation,
						reproduce.Mean(v)} {
						lines[k].X, lines[k].Y = append(lines[k].X, p.x), append(lines[k].Y, y)
					}
				}
				up.Lines, down.Lines = lines[:2], lines[2:]
				c.Panels = append(c.Panels, up)
				below = append(below, down)
			}
			if promised {
				c.Panels = append(c.Panels, below...)
				o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-7-" + s.Name, Drawing: c})
			}
		}
		return nil
	})
	return nil
}
