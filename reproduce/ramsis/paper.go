package ramsis

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
	// asked has it run only when it is asked for by name: it measures times, which are the machine's.
	asked bool
}{
	{reproduce.Figure{Name: "5", Doc: "the production trace by workers: image and text, three objectives each"}, figure5, false},
	{reproduce.Figure{Name: "6", Doc: "constant load: image on 60 workers and text on 20, three objectives each"}, figure6, false},
	{reproduce.Figure{Name: "7", Doc: "what policies promise against what is simulated, 40, 60 and 80 workers"}, figure7, false},
	{reproduce.Figure{Name: "8", Doc: "9 and 60 models, 100 workers"}, figure8, false},
	{reproduce.Figure{Name: "10", Doc: "how finely slack is told apart"}, figure10, false},
	{reproduce.Figure{Name: "11", Doc: "batches of everything that waits, and batches that leave queries behind"}, figure11, false},
	{reproduce.Figure{Name: "12", Doc: "9 and 3 models"}, figure12, false},
	{reproduce.Figure{Name: "T2", Doc: "Table 2: how long a policy takes to be made; only when asked for by name, since times are the machine's"}, table2, true},
	{reproduce.Figure{Name: "T3", Doc: "Table 3: violations in Figure 5"}, table3, false},
	{reproduce.Figure{Name: "T4", Doc: "Table 4: violations in Figure 6"}, table4, false},
	{reproduce.Figure{Name: "A4", Doc: "the artifact's own evaluation: image, SLO 150 ms, 60 to 80 workers"}, figureA4, false},
	{reproduce.Figure{Name: "H", Doc: "appendix H: INFaaS with every accuracy target"}, figureH, false},
	{reproduce.Figure{Name: "W", Doc: "ours: workers that others need for what RAMSIS does with 60, by constant load"}, figureW, false},
	{reproduce.Figure{Name: "7L", Doc: "Figure 7's implementation: the data plane with sleeping workers; five minutes, only when asked for"}, figure7Live, true},
}

// Paper is the paper's experiments.
func Paper() reproduce.Paper {
	p := reproduce.Paper{Name: "ramsis", Title: "Model Selection for Latency-Critical Inference Serving (RAMSIS, EuroSys 2024)", Run: run}
	for _, f := range figures {
		p.Figures = append(p.Figures, f.Figure)
	}
	return p
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	if r.Solver == nil {
		return nil, errors.New("the bounds beside the experiments of ramsis need a solver of linear programs")
	}
	l, err := newLab(r)
	if err != nil {
		return nil, err
	}
	for _, f := range figures {
		if len(r.Figures) == 0 && !f.asked || slices.Contains(r.Figures, f.Name) {
			if err := f.plan(l); err != nil {
				return nil, err
			}
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		o.Notes = append(o.Notes,
			"Accuracies are means over the queries in time, as in the paper. Violations count every query, those still waiting when the load ends too: they are served to the end, where the authors' simulator leaves them out.",
			"The fluid bound is the accuracy of a steady flow that is always batched at will; nothing that keeps all queries in time is above it. A system that lets queries be late may be, since those do not count in the mean.")
		return nil
	})
	return l.Run(ctx)
}
