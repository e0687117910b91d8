package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// runner collects what the figures need. Tests lower sampled and span.
type runner struct {
	*reproduce.Runner
	graphs  []graph
	sampled int           // decisions of a session that Figures 10 and 11 use
	span    time.Duration // simulated length of sessions
}

func newRunner(r reproduce.Request) (*runner, error) {
	all, err := graphs()
	if err != nil {
		return nil, err
	}
	return &runner{Runner: reproduce.NewRunner(r), graphs: all, sampled: 40, span: span}, nil
}

// graph returns one of the seven by name.
func (run *runner) graph(name string) *graph {
	for i := range run.graphs {
		if run.graphs[i].name == name {
			return &run.graphs[i]
		}
	}
	panic("scrooge: no graph " + name) // all names are in this package
}

// nexusGraphs are the graphs that Nexus can run (§4.1).
var nexusGraphs = []string{"traffic", "face", "tracker"}

// row returns a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "scrooge", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addChart adds the chart of a figure.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "Scrooge, Figure "+title, columns, panels...)
}

// relaxations are the objectives of Figures 12 and 13 as multiples of a graph's own: 400, 600, 800 and 1,000 ms for 400
// ms.
var relaxations = []float64{1, 1.5, 2, 2.5}

func scaleDuration(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
