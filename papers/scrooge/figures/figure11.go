package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published11 are upper bounds of the time of the program as written, in ms, with 2 types and with 30 (§4.3).
var published11 = []float64{100, 130}

// figure11 measures how long allocations take on this machine.
func figure11(run *runner) error {
	methods := run.methods()
	worlds := []struct {
		types int
		*market
	}{{2, &testbedMarket}, {30, &wideMarket}}
	var tasks []*reproduce.Task
	for _, w := range worlds {
		// One task, so that nothing else of it runs while times are measured.
		tasks = append(tasks, run.AddTask(fmt.Sprint("allocation times with ", w.types, " types"), 100, 1,
			func(ctx context.Context, seed uint64) (any, error) {
				out := make([][]float64, len(methods))
				for i := range run.graphs {
					g := &run.graphs[i]
					all, err := run.sampleDecisions(g, seed)
					if err != nil {
						return nil, err
					}
					for n, d := range all {
						p := w.problem(g, g.objective, d.rates)
						for k, m := range methods {
							if w.types > 2 && m.solves && n%8 > 0 {
								continue // HiGHS in WebAssembly takes seconds where Gurobi took a tenth of one
							}
							begun := time.Now()
							if _, err := m.by(ctx, p); err != nil {
								return nil, fmt.Errorf("%s asked for %v, %s, %d types: %w", g.name, d.rates, m.name,
									w.types, err)
							}
							out[k] = append(out[k], 1000*time.Since(begun).Seconds())
						}
					}
				}
				return out, nil
			}))
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for t, w := range worlds {
			p := plot.Panel{
				Name: fmt.Sprintf("share of the decisions (%%), %d types", w.types), XName: "ms", Low: 0, High: 100,
			}
			for k, m := range methods {
				all := tasks[t].Results[0].([][]float64)[k]
				slices.Sort(all)
				at := reproduce.Setting("types", w.types)
				most := row("11", m.name, "longest", "ms", at)
				if m.name == "as written" {
					most = most.WithPublished(published11[t], "§4.3, Figure 11: within")
				}
				o.AddRow(row("11", m.name, "median", "ms", at), all[len(all)/2])
				o.AddRow(row("11", m.name, "99th percentile", "ms", at), all[min(len(all)*99/100, len(all)-1)])
				o.AddRow(most, all[len(all)-1])
				line := plot.Line{Name: m.name}
				for i, x := range all {
					line.X, line.Y = append(line.X, math.Max(x, 1e-3)),
						append(line.Y, 100*float64(i+1)/float64(len(all)))
				}
				p.Lines = append(p.Lines, line)
			}
			panels = append(panels, p)
		}
		addChart(o, "11", "11: how long allocations take", 1, panels...)
		return nil
	})
	return nil
}
