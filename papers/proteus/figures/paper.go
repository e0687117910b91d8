package proteus

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them in the order of the paper.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{
			Name: "4", Doc: "end to end: accuracy, throughput and violations on four traces, honestly and as the " +
				"release counts",
		}, Prepare: figure4,
	},
	{Figure: reproduce.Figure{Name: "5", Doc: "bursts of demand"}, Prepare: figure5},
	{
		Figure: reproduce.Figure{
			Name: "6", Doc: "batching under uniform, Poisson and gamma arrivals, at 50 to 100 % of capacity",
		}, Prepare: figure6,
	},
	{Figure: reproduce.Figure{Name: "7", Doc: "ablations"}, Prepare: figure7},
	{Figure: reproduce.Figure{Name: "8", Doc: "objectives from 1 to 3.5 times the fastest CPU variant"},
		Prepare: figure8},
	{Figure: reproduce.Figure{Name: "9", Doc: "by model family"}, Prepare: figure9},
	{
		Figure: reproduce.Figure{
			Name: "10", Doc: "the integer program by devices, variants and families",
		}, Prepare: figure10,
	},
	{
		Figure: reproduce.Figure{
			Name: "clumps", Doc: "ours: flat, Poisson and clumped arrivals at the rates of a trace, and head-room " +
				"that follows them",
		}, Prepare: figureClumps, OnRequest: true,
	},
}

// Paper returns the experiments of Proteus.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name:    "proteus",
		Title:   "Proteus: A High-Throughput Inference-Serving System with Accuracy Scaling (ASPLOS 2024)",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	if r.Solver == nil {
		return nil, errors.New("the experiments of proteus need a solver of integer programs")
	}
	run, err := newRunner(r)
	if err != nil {
		return nil, err
	}
	if err := reproduce.Prepare(run, figures, r.Figures); err != nil {
		return nil, err
	}
	return run.Run(ctx)
}

// row returns a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "proteus", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addTotals adds the quantities of §6.2 for one system in one setting. published has known numbers by quantity.
func addTotals(o *reproduce.Outcome, figure string, t *task, label string, setting map[string]string,
	published map[string]float64, source string) {
	add := func(quantity, unit string, f func(*result) float64) {
		r := row(figure, label, quantity, unit, setting)
		if v, ok := published[quantity]; ok {
			r = r.WithPublished(v, source)
		}
		o.AddRow(r, t.each(f)...)
	}
	add("effective accuracy", "%", func(r *result) float64 { return 100 * r.accuracy })
	add("maximum accuracy drop", "points", func(r *result) float64 { return 100 * r.drop })
	add("SLO violations", "%", func(r *result) float64 { return 100 * r.violations })
	add("throughput", "/s", func(r *result) float64 { return r.throughput })
}
