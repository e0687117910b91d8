package proteus

import (
	"math"
	"strconv"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure8 varies objectives from 1 to 3.5 times the latency of the fastest CPU variant (§6.6). The sets are the
// authors' own; their third has a multiple of 2.1 where the paper says 2.
func figure8(run *runner) error {
	multiples, slos, err := readObjectives(run.spec)
	if err != nil {
		return err
	}
	t := run.trace(authorsTrace)
	tasks := make(map[[2]string]*task)
	for _, x := range multiples {
		w, err := run.environment(setup{slos: slos[x]})
		if err != nil {
			return err
		}
		for _, name := range comparedSystems {
			tasks[[2]string{x, name}] = run.simulationTask(name+" at "+x+" times", newJob(w, system(name), t))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		nan := math.NaN()
		c := &plot.Chart{Title: "Proteus, Figure 8: " + t.name, Columns: 3, Panels: []plot.Panel{
			{Name: "Throughput (queries/s)", Low: nan, High: nan}, {
				Name: "Maximum accuracy drop (points)", Low: 0, High: nan,
			},
			{Name: "SLO violations (%)", Low: 0, High: nan},
		}}
		for i := range c.Panels {
			c.Panels[i].XName = "SLO (times the fastest CPU variant)"
			for _, name := range comparedSystems {
				c.Panels[i].Lines = append(c.Panels[i].Lines, plot.Line{Name: name})
			}
		}
		for _, x := range multiples {
			at, err := strconv.ParseFloat(x, 64)
			if err != nil {
				return err
			}
			for k, name := range comparedSystems {
				done := tasks[[2]string{x, name}]
				addTotals(o, "8", done, name, map[string]string{"SLO": x + " times"}, nil, "")
				for i, f := range []func(*result) float64{
					func(r *result) float64 {
						return r.throughput
					}, func(r *result) float64 {
						return 100 * r.drop
					}, func(r *result) float64 { return 100 * r.violations },
				} {
					line := &c.Panels[i].Lines[k]
					line.X, line.Y = append(line.X, at), append(line.Y, reproduce.Mean(done.each(f)))
				}
			}
		}
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-8", Drawing: c})
		return nil
	})
	return nil
}
