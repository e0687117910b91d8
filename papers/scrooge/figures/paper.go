package scrooge

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them in the order of the paper.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{
			Name: "1", Doc: "the seven graphs: what 12 clients ask of them, and the machines that takes",
		}, Prepare: figure1,
	},
	{
		Figure: reproduce.Figure{
			Name: "5", Doc: "the modelled profile of SSD-Inception, by batch size and concurrency",
		}, Prepare: figure5,
	},
	{
		Figure: reproduce.Figure{
			Name: "6", Doc: "cost and finish rate of sessions by Scrooge and Nexus, and the least that they could cost",
		}, Prepare: figure6,
	},
	{Figure: reproduce.Figure{Name: "7", Doc: "a session of traffic over time"}, Prepare: overTime("7", "traffic")},
	{Figure: reproduce.Figure{Name: "8", Doc: "a session of face over time"}, Prepare: overTime("8", "face")},
	{Figure: reproduce.Figure{Name: "9", Doc: "a session of tracker over time"}, Prepare: overTime("9", "tracker")},
	{
		Figure: reproduce.Figure{
			Name: "10", Doc: "cost over the least: the two-step program as written, greedy and exact allocation",
		}, Prepare: figure10,
	},
	{
		Figure: reproduce.Figure{
			Name: "11", Doc: "how long allocations take with 2 and 30 machine types, on this machine; when asked for " +
				"by name",
		}, Prepare: figure11, OnRequest: true,
	},
	{Figure: reproduce.Figure{Name: "12", Doc: "cost by objective, seven graphs"}, Prepare: figure12},
	{
		Figure: reproduce.Figure{
			Name: "13", Doc: "cost without spatial multiplexing, and the throughput of a machine, by objective",
		}, Prepare: figure13,
	},
	{Figure: reproduce.Figure{Name: "14", Doc: "finish rate and cost by turn-off delay, seven graphs"},
		Prepare: figure14},
	{
		Figure: reproduce.Figure{
			Name: "M", Doc: "ours: exact allocation against the paper's two-step one, a greedy one and one batch at " +
				"a time, in the running system",
		}, Prepare: figureM,
	},
}

// Paper returns the experiments of Scrooge.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name: "scrooge", Title: "Scrooge: A Cost-Effective Deep Learning Inference System (SoCC 2021)",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	if r.Solver == nil {
		return nil, errors.New("the experiments of scrooge need a solver of integer programs")
	}
	run, err := newRunner(r)
	if err != nil {
		return nil, err
	}
	return run.runFigures(ctx)
}

// runFigures runs the figures of the request.
func (run *runner) runFigures(ctx context.Context) (*reproduce.Outcome, error) {
	if err := reproduce.Prepare(run, figures, run.Figures); err != nil {
		return nil, err
	}
	run.AddNotes("Profiles are modelled, not measured: the authors published none. The model is held to what the " +
		"paper's text says of them (docs/papers.md, Scrooge).")
	return run.Run(ctx)
}
