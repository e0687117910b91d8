package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// runner is where figures say what they want.
type runner struct {
	*reproduce.Runner
	graphs []graph
	// Of what follows tests take less.
	sampled int           // decisions of a session that Figures 10 and 11 look at
	span    time.Duration // of sessions that run
}

func newRunner(r reproduce.Request) (*runner, error) {
	all, err := graphs()
	if err != nil {
		return nil, err
	}
	return &runner{Runner: reproduce.NewRunner(r), graphs: all, sampled: 40, span: span}, nil
}

// graph returns one of the seven.
func (run *runner) graph(name string) *graph {
	for i := range run.graphs {
		if run.graphs[i].name == name {
			return &run.graphs[i]
		}
	}
	panic("scrooge: no graph " + name) // the names are this package's own
}

// nexusGraphs are the graphs that Nexus can run (§4.1).
var nexusGraphs = []string{"traffic", "face", "tracker"}

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "scrooge", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addChart adds a chart of a figure; its name in files is figure-NAME.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "Scrooge, Figure "+title, columns, panels...)
}

// relaxations are the objectives of Figures 12 and 13, over a graph's own: 400, 600, 800 and 1,000 ms where that is 400 ms.
var relaxations = []float64{1, 1.5, 2, 2.5}

func scaleDuration(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
