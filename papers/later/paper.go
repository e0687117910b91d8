// Package later holds the headline claims of systems published since the five papers: Loki, Symphony and SuperServe.
// Their texts could not be read, so no figure of theirs is repeated. Each claim is tried in a world of ours, whose
// models are modelled: round numbers of the size that such models have. The published number stands beside what is
// measured, and says no more than which way a result should lie.
package later

import (
	"context"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{
			Name: "L1", Doc: "Loki: what a fixed cluster carries, with accuracy scaling and without (modelled models)",
		}, Prepare: lokiCapacity,
	},
	{
		Figure: reproduce.Figure{
			Name: "L2", Doc: "Loki: violations, accuracy and machines along a day's load (modelled models)",
		}, Prepare: lokiDay,
	},
	{
		Figure: reproduce.Figure{
			Name: "S1",
			Doc:  "Symphony: goodput of deferred and of eager dispatch, by number of models (modelled models)",
		}, Prepare: symphonyGoodput,
	},
	{
		Figure: reproduce.Figure{
			Name: "S2", Doc: "Symphony: machines in use and machines needed by load (modelled models)",
		}, Prepare: symphonyMachines,
	},
	{
		Figure: reproduce.Figure{
			Name: "F1",
			Doc:  "SuperServe: accuracy and attainment beside every fixed variant, by burst (modelled models)",
		}, Prepare: superServeFixed,
	},
}

// Paper returns the experiments.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name: "later", Title: "Later systems: the claims of Loki, Symphony and SuperServe in worlds of ours",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	run := newRunner(r)
	if err := reproduce.Prepare(run, figures, r.Figures); err != nil {
		return nil, err
	}
	run.AddNotes("All models are modelled: a batch of b takes a base and a time for each item, which are ours. The " +
		"published numbers in brackets were measured with other models, machines and loads.")
	return run.Run(ctx)
}

// runner collects the runs of the figures.
type runner struct {
	*reproduce.Runner
	quick bool // short runs, for tests
}

func newRunner(r reproduce.Request) *runner { return &runner{Runner: reproduce.NewRunner(r)} }

// row is a row of a figure.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "later", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}
