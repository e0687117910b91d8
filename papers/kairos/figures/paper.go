package kairos

import (
	"context"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them in the order of the paper.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{
			Name: "1", Doc: "RM2: three mixed pools without a rule for queries against the best homogeneous one",
		}, Prepare: figure1,
	},
	{
		Figure: reproduce.Figure{
			Name: "2", Doc: "RM2: what simulated annealing evaluates on its way, without a rule for queries",
		}, Prepare: figure2,
	},
	{Figure: reproduce.Figure{Name: "3", Doc: "RM2: the same pools under every rule for queries"}, Prepare: figure3},
	{Figure: reproduce.Figure{Name: "8", Doc: "Kairos against the best homogeneous pool, five models"},
		Prepare: figure8},
	{Figure: reproduce.Figure{Name: "9", Doc: "every rule on its best pool, five models"}, Prepare: figure9},
	{
		Figure: reproduce.Figure{
			Name: "10", Doc: "how many pools Algorithm 1 evaluates under every rule",
		}, Prepare: figure10,
	},
	{
		Figure: reproduce.Figure{
			Name: "11", Doc: "how many pools every search evaluates until it has the best, and until nothing is open",
		}, Prepare: figure11,
	},
	{
		Figure: reproduce.Figure{
			Name: "11L",
			Doc:  "RM2: Algorithm 1 on the data plane, in real time, beside the simulator (only when asked for)",
		}, Prepare: figure11Live, OnRequest: true,
	},
	{
		Figure: reproduce.Figure{
			Name: "12", Doc: "RM2: what is evaluated after the sizes of queries have changed",
		}, Prepare: figure12,
	},
	{Figure: reproduce.Figure{Name: "13", Doc: "the pools with the highest bounds, five models"}, Prepare: figure13},
	{
		Figure: reproduce.Figure{
			Name: "14", Doc: "RM2: the pools with the highest bounds under every rule",
		}, Prepare: figure14,
	},
	{
		Figure: reproduce.Figure{
			Name: "15", Doc: "Figure 8 with four times the budget, and with QoS targets 20 % higher",
		}, Prepare: figure15,
	},
	{
		Figure: reproduce.Figure{
			Name: "16", Doc: "Figure 8 with Gaussian sizes, and with noise in latencies",
		}, Prepare: figure16,
	},
	{
		Figure: reproduce.Figure{
			Name: "B", Doc: "ours: the paper's upper bound beside our linear program's, five models",
		}, Prepare: figureB,
	},
	{
		Figure: reproduce.Figure{
			Name: "budgets", Doc: "ours: what every planner chooses at five budgets, beside the best of a search " +
				"(only when asked for)",
		}, Prepare: figureBudgets, OnRequest: true,
	},
}

// Paper returns the experiments of Kairos.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name: "kairos",
		Title: "Kairos: Building Cost-Efficient Machine Learning Inference Systems with Heterogeneous Cloud " +
			"Resources (HPDC 2023)", Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	return newRunner(r).runFigures(ctx)
}

// runFigures runs the figures of the request.
func (run *runner) runFigures(ctx context.Context) (*reproduce.Outcome, error) {
	if err := reproduce.Prepare(run, figures, run.Figures); err != nil {
		return nil, err
	}
	run.AddNotes(
		"Throughput is the highest rate at which at most 1 % of the queries are outside QoS, by bisection. Between "+
			"what is known to be carried and what is known not to be, each with 2.5 % of error a look, lies what the "+
			"number may be.",
		"Whole ms: between queries lie whole milliseconds, Poisson-distributed, as the authors' code draws them. "+
			"Poisson: exponential gaps, as the paper says. Pools are (g4dn.xlarge, c5n.2xlarge, r5n.large, t3.xlarge).")
	return run.Run(ctx)
}
