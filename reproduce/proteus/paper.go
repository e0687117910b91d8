package proteus

import (
	"context"
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/reproduce"
)

// figures in the order of the paper, with what each wants.
var figures = []struct {
	reproduce.Figure
	plan func(*lab) error
}{
	{reproduce.Figure{Name: "4", Doc: "end to end: accuracy, throughput and violations on four traces, honestly and as the release counts"}, figure4},
	{reproduce.Figure{Name: "5", Doc: "bursts of demand"}, figure5},
	{reproduce.Figure{Name: "6", Doc: "batching under uniform, Poisson and gamma arrivals, at 50 to 100 % of capacity"}, figure6},
	{reproduce.Figure{Name: "7", Doc: "ablations"}, figure7},
	{reproduce.Figure{Name: "8", Doc: "objectives from 1 to 3.5 times the fastest CPU variant"}, figure8},
	{reproduce.Figure{Name: "9", Doc: "by model family"}, figure9},
	{reproduce.Figure{Name: "10", Doc: "the integer program by devices, variants and families"}, figure10},
}

// Paper is the paper's experiments.
func Paper() reproduce.Paper {
	p := reproduce.Paper{Name: "proteus", Title: "Proteus: A High-Throughput Inference-Serving System with Accuracy Scaling (ASPLOS 2024)", Run: run}
	for _, f := range figures {
		p.Figures = append(p.Figures, f.Figure)
	}
	return p
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	if r.Solver == nil {
		return nil, errors.New("the experiments of proteus need a solver of integer programs")
	}
	l, err := newLab(r)
	if err != nil {
		return nil, err
	}
	for _, f := range figures {
		if len(r.Figures) == 0 || slices.Contains(r.Figures, f.Name) {
			if err := f.plan(l); err != nil {
				return nil, err
			}
		}
	}
	return l.Run(ctx)
}

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{Paper: "proteus", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting}
}

// totals are the quantities of §6.2 of one system in one setting. published gives those that are known, by quantity.
func totals(o *reproduce.Outcome, figure string, t *task, label string, setting map[string]string, published map[string]float64, source string) {
	add := func(quantity, unit string, f func(*result) float64) {
		r := row(figure, label, quantity, unit, setting)
		if v, ok := published[quantity]; ok {
			r.Published, r.Source = reproduce.Published(v), source
		}
		o.Add(r, t.each(f)...)
	}
	add("effective accuracy", "%", func(r *result) float64 { return 100 * r.accuracy })
	add("maximum accuracy drop", "points", func(r *result) float64 { return 100 * r.drop })
	add("SLO violations", "%", func(r *result) float64 { return 100 * r.violations })
	add("throughput", "/s", func(r *result) float64 { return r.throughput })
}
