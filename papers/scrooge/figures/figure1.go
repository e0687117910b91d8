package scrooge

import (
	"context"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure1 shows the graphs and how their loads are set. All twelve clients together, at their mean rates and the usual
// level of content, need about the sixteen accelerators ("the highest ingress rate for each mDAG saturates our 16 node
// cluster", §4.2).
func figure1(run *runner) error {
	for i := range run.graphs {
		g := &run.graphs[i]
		asked := g.stageRates(clients*(g.low+g.high)/2, usualLevel)
		task := run.AddTask("12 clients of "+g.name, 1, 1, func(ctx context.Context, _ uint64) (any, error) {
			p := testbedMarket.problem(g, g.objective, asked)
			a, err := exact(ctx, p)
			if err != nil {
				return nil, err
			}
			return []float64{machinesUsed(p, a, -1, p100) + machinesUsed(p, a, -1, v100), machinesUsed(p, a, -1, cpu),
				a.Cost}, nil
		})
		run.Report(func(o *reproduce.Outcome) error {
			at := reproduce.Setting("graph", g.name, "objective", g.objective)
			for k, s := range g.stages {
				o.AddRow(row("1", s.name+" ("+s.model.name+")", "asked", "items/s", at), asked[k])
			}
			v := task.Results[0].([]float64)
			o.AddRow(row("1", "whole graph", "accelerators", "", at), v[0])
			o.AddRow(row("1", "whole graph", "CPU workers", "", at), v[1])
			o.AddRow(row("1", "whole graph", "cost", "$/h", at), v[2])
			return nil
		})
	}
	return nil
}
