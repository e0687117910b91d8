package infless

import (
	"time"

	"github.com/sluice-serving/sluice/papers/infless/predict"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name:  "infless",
	Title: "INFless: A Native Serverless System for Low-Latency, High-Throughput Inference (ASPLOS 2022)",
	New:   func(r reproduce.Request) (*runner, error) { return newRunner(r), nil },
	Figures: []reproduce.Declaration[*runner]{
		{Name: "2", Declare: figure2, Doc: "models on CPU threads alone, one query and batches of four"},
		{Name: "3", Declare: figure3,
			Doc: "instances of a platform that gives each request its own, with and without batches in front"},
		{Name: "7", Declare: figure7, Doc: "calls and times of the operators of two networks, from the artifact"},
		{Name: "10", Declare: figure10, Doc: "the three traces"},
		{Name: "8", Doc: predict.Doc + "; when asked for by name", OnRequest: true,
			Declare: func(run *runner, _ *reproduce.Sheet) error { return predict.Prepare(run.Runner) }},
		{Name: "11", Declare: figure11,
			Doc: "the highest load that 8 servers carry, by system and without each part of INFless"},
		{Name: "12a", Declare: figure12a,
			Doc: "throughput for what is occupied, along three traces, by system; what a linear program allows"},
		{Name: "12b", Declare: figure12b, Doc: "the same by objective"},
		{Name: "13", Declare: figure13,
			Doc: "ResNet-50: which batch sizes serve it, on how many kinds of instances"},
		{Name: "14", Declare: figure14, Doc: "ResNet-50: what is occupied over time"},
		{Name: "15a", Declare: figure15a, Doc: "violations along three traces, by system"},
		{Name: "15b", Declare: figure15b,
			Doc: "ResNet-50: cold start, queueing and execution, with objectives of 150 and 350 ms"},
		{Name: "16", Declare: figure16, Doc: "cold starts and idle instances by policy: LSTH and others against HHP, " +
			"and what every policy can trade"},
		{Name: "17", Declare: figure17, Doc: "2,000 servers, 40 functions: what is left over of active servers"},
		{Name: "17a", Declare: figure17a, OnRequest: true,
			Doc: "2,000 servers, 40 functions: how long a plan takes, on this machine; when asked for by name"},
		{Name: "18", Declare: figure18,
			Doc: "2,000 servers: throughput for a unit of resources, by functions and objectives"},
		{Name: "T4", Declare: table4, Doc: "Table 4: CPUs and GPUs for 100 queries/s, and what a query costs"},
	},
}

// Paper returns the experiments of INFless.
func Paper() reproduce.Paper { return study.Paper() }

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

// title is the title of a chart.
func title(what string) string { return "INFless, Figure " + what }

// over divides by the numbers of the same seed in base; it gives 0 where that is 0.
func over(n, base reproduce.Values) reproduce.Values {
	return n.With(base, func(a, b float64) float64 {
		if b > 0 {
			return a / b
		}
		return 0
	})
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
