package infless

import (
	"context"

	"github.com/sluice-serving/sluice/papers/infless/predict"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them in the order of the paper.
var figures = []reproduce.Experiment[*runner]{
	{Figure: reproduce.Figure{Name: "8", Doc: predict.Doc + "; when asked for by name"},
		Prepare: func(run *runner) error {
			return predict.Prepare(run.Runner)
		}, OnRequest: true},
	{
		Figure: reproduce.Figure{
			Name: "11", Doc: "the highest load that 8 servers carry, by system and without each part of INFless",
		}, Prepare: figure11,
	},
	{
		Figure: reproduce.Figure{
			Name: "12a",
			Doc:  "throughput for what is occupied, along three traces, by system; what a linear program allows",
		}, Prepare: figure12a,
	},
	{Figure: reproduce.Figure{Name: "12b", Doc: "the same by objective"}, Prepare: figure12b},
	{
		Figure: reproduce.Figure{
			Name: "13", Doc: "ResNet-50: which batch sizes serve it, on how many kinds of instances",
		}, Prepare: figure13,
	},
	{Figure: reproduce.Figure{Name: "14", Doc: "ResNet-50: what is occupied over time"}, Prepare: figure14},
	{Figure: reproduce.Figure{Name: "15a", Doc: "violations along three traces, by system"}, Prepare: figure15a},
	{
		Figure: reproduce.Figure{
			Name: "15b", Doc: "ResNet-50: cold start, queueing and execution, with objectives of 150 and 350 ms",
		}, Prepare: figure15b,
	},
	{
		Figure: reproduce.Figure{
			Name: "16", Doc: "cold starts and idle instances by policy: LSTH and others against HHP, and what every " +
				"policy can trade",
		}, Prepare: figure16,
	},
	{
		Figure: reproduce.Figure{
			Name: "17", Doc: "2,000 servers, 40 functions: what is left over of active servers",
		}, Prepare: figure17,
	},
	{
		Figure: reproduce.Figure{
			Name: "17a",
			Doc:  "2,000 servers, 40 functions: how long a plan takes, on this machine; when asked for by name",
		}, Prepare: figure17a, OnRequest: true,
	},
	{
		Figure: reproduce.Figure{
			Name: "18", Doc: "2,000 servers: throughput for a unit of resources, by functions and objectives",
		}, Prepare: figure18,
	},
	{
		Figure: reproduce.Figure{
			Name: "T4", Doc: "Table 4: CPUs and GPUs for 100 queries/s, and what a query costs",
		}, Prepare: table4,
	},
}

// Paper returns the experiments of INFless.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name:    "infless",
		Title:   "INFless: A Native Serverless System for Low-Latency, High-Throughput Inference (ASPLOS 2022)",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	run := newRunner(r)
	if err := reproduce.Prepare(run, figures, r.Figures); err != nil {
		return nil, err
	}
	return run.Run(ctx)
}
