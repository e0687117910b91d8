package ramsis

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them in the order of the paper.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{
			Name: "5", Doc: "the production trace by workers: image and text, three objectives each",
		}, Prepare: figure5,
	},
	{
		Figure: reproduce.Figure{
			Name: "6", Doc: "constant load: image on 60 workers and text on 20, three objectives each",
		}, Prepare: figure6,
	},
	{
		Figure: reproduce.Figure{
			Name: "7", Doc: "what policies promise against what is simulated, 40, 60 and 80 workers",
		}, Prepare: figure7,
	},
	{Figure: reproduce.Figure{Name: "8", Doc: "9 and 60 models, 100 workers"}, Prepare: figure8},
	{Figure: reproduce.Figure{Name: "10", Doc: "how finely slack is told apart"}, Prepare: figure10},
	{
		Figure: reproduce.Figure{
			Name: "11", Doc: "batches of everything that waits, and batches that leave queries behind",
		}, Prepare: figure11,
	},
	{Figure: reproduce.Figure{Name: "12", Doc: "9 and 3 models"}, Prepare: figure12},
	{
		Figure: reproduce.Figure{
			Name: "T2", Doc: "Table 2: how long a policy takes to be made; only when asked for by name, since times " +
				"are the machine's",
		}, Prepare: figureT2, OnRequest: true,
	},
	{Figure: reproduce.Figure{Name: "T3", Doc: "Table 3: violations in Figure 5"}, Prepare: figureT3},
	{Figure: reproduce.Figure{Name: "T4", Doc: "Table 4: violations in Figure 6"}, Prepare: figureT4},
	{
		Figure: reproduce.Figure{
			Name: "A4", Doc: "the artifact's own evaluation: image, SLO 150 ms, 60 to 80 workers",
		}, Prepare: figureA4,
	},
	{Figure: reproduce.Figure{Name: "H", Doc: "appendix H: INFaaS with every accuracy target"}, Prepare: figureH},
	{
		Figure: reproduce.Figure{
			Name: "W", Doc: "ours: workers that others need for what RAMSIS does with 60, by constant load",
		}, Prepare: figureW,
	},
	{
		Figure: reproduce.Figure{
			Name: "7L", Doc: "Figure 7's implementation: the data plane with sleeping workers; five minutes, only " +
				"when asked for",
		}, Prepare: figure7Live, OnRequest: true,
	},
}

// Paper returns the experiments of RAMSIS.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name: "ramsis", Title: "Model Selection for Latency-Critical Inference Serving (RAMSIS, EuroSys 2024)",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	if r.Solver == nil {
		return nil, errors.New("the bounds beside the experiments of ramsis need a solver of linear programs")
	}
	run, err := newRunner(r)
	if err != nil {
		return nil, err
	}
	if err := reproduce.Prepare(run, figures, r.Figures); err != nil {
		return nil, err
	}
	run.AddNotes(
		"Accuracies are means over the queries in time, as in the paper. Violations count every query, those still "+
			"waiting when the load ends too: they are served to the end, where the authors' simulator leaves them out.",
		"The fluid bound is the accuracy of a steady flow that is always batched at will; nothing that keeps all "+
			"queries in time is above it. A system that lets queries be late may be, since those do not count in the "+
			"mean.")
	return run.Run(ctx)
}
