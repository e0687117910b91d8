package scrooge

import (
	"context"

	"github.com/sluice-serving/sluice/reproduce"
)

// figure1 is the graphs, and how the loads are set: what all twelve clients ask together, at their mean rates and with
// what is usual going on, takes about the sixteen accelerators ("the highest ingress rate for each mDAG saturates our
// 16 node cluster", §4.2).
func figure1(l *lab) error {
	for i := range l.graphs {
		g := &l.graphs[i]
		asked := g.asked(clients*(g.low+g.high)/2, usual)
		task := l.AddTask("12 clients of "+g.name, 1, 1, func(ctx context.Context, _ uint64) (any, error) {
			p := testbed.problem(g, g.objective, asked)
			a, err := exactly(ctx, p)
			if err != nil {
				return nil, err
			}
			return []float64{used(p, a, -1, p100) + used(p, a, -1, v100), used(p, a, -1, cpu), a.Cost}, nil
		})
		l.Report(func(o *reproduce.Outcome) error {
			at := setting("graph", g.name, "objective", g.objective)
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
