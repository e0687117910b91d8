package infless

import (
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// runner collects what the figures need. Tests use less of everything.
type runner struct {
	*reproduce.Runner
	steps         int         // steps of a trace that are simulated
	stressQueries int         // most queries in a run of Figure 11
	callTraces    []callTrace // of Figure 16
}

func newRunner(r reproduce.Request) *runner {
	return &runner{Runner: reproduce.NewRunner(r), steps: traceSteps, stressQueries: 60000, callTraces: callTraces}
}

// row returns a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "infless", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addChart adds the chart of a figure.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "INFless, Figure "+title, columns, panels...)
}

// variedFunctions returns n functions of the five models. With slo 0 their objectives vary from three quarters of the
// model's own to one and a half of it (§5.3 varies them without saying how). Otherwise slo is the objective of OSVT's
// models, and those of the others change in proportion.
func variedFunctions(n int, slo time.Duration) (out []function) {
	models := []function{osvt[0], qa[0], osvt[1], qa[1], osvt[2]}
	for k := range n {
		f := models[k%len(models)]
		if slo > 0 {
			f.slo = time.Duration(float64(f.slo) * float64(slo) / float64(osvt[0].slo))
		} else {
			f.slo = f.slo * time.Duration(75+25*(k/len(models)%4)) / 100
		}
		out = append(out, f)
	}
	return out
}

// loadShares returns the loads of n functions, in any unit. They repeat the numbers 1, 4, 3, 2.
func loadShares(n int) []float64 {
	out := make([]float64, n)
	for k := range out {
		out[k] = float64(1 + k*7%4)
	}
	return out
}
