package infless

import (
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// runner is where figures say what they want.
type runner struct {
	*reproduce.Runner
	steps int // of the traces that runs follow
}

func newRunner(r reproduce.Request) *runner {
	return &runner{Runner: reproduce.NewRunner(r), steps: traceSteps}
}

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "infless", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addChart adds a chart of a figure; its name in files is figure-NAME.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "INFless, Figure "+title, columns, panels...)
}

// variedFunctions makes so many functions of the five models: each with another objective, from three quarters of its own up to
// one and a half of it (§5.3 varies them without saying how), or all with the given one, stretched likewise for models
// of shorter objectives.
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

// loadShares are how the load is spread over functions: as 1 to 4 over and over, whatever they are.
func loadShares(n int) []float64 {
	out := make([]float64, n)
	for k := range out {
		out[k] = float64(1 + k*7%4)
	}
	return out
}
