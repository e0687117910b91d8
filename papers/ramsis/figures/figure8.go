package ramsis

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// contender is a system with its models, as one of those that a figure compares.
type contender struct {
	label, system string
	modelSet      modelSet
	levels        int // of slack that the system tells apart; 0 for its own, -1 for model-based ones
}

var (
	// contenders8 show the value of more models (§7.3.2).
	contenders8 = []contender{
		{"ramsis, 9 models", "ramsis", pareto, 0}, {"ramsis, 60 models", "ramsis", dense, 0},
		{"modelswitching, 9 models", "modelswitching", pareto, 0},
		{"modelswitching, 60 models", "modelswitching", dense, 0},
	}
	// contenders10 vary the discretisation of slack (appendix C).
	contenders10 = []contender{
		{"ramsis, FLD D = 2", "ramsis", pareto, 2}, {"ramsis, FLD D = 10", "ramsis", pareto, 10},
		{"ramsis, FLD D = 100", "ramsis", pareto, 100}, {"ramsis, MD", "ramsis", pareto, -1},
	}
	// contenders11 take batches of all waiting queries, or batches that may leave some behind (appendix D).
	contenders11 = []contender{
		{"ramsis, maximal batching", "ramsis", pareto, 0}, {"ramsis, variable batching", "ramsis-variable", pareto, 0},
	}
	// contenders12 have 9 models or 3 (appendix E).
	contenders12 = []contender{
		{"ramsis, 9 models", "ramsis", pareto, 0}, {"ramsis, 3 models", "ramsis", few, 0},
		{"jellyfish+, 9 models", "jellyfish+", pareto, 0}, {"jellyfish+, 3 models", "jellyfish+", few, 0},
	}
)

// sideBySide returns a figure that runs contenders under every constant load.
func sideBySide(title string, workers int, list []contender) func(*runner, *reproduce.Sheet) error {
	return func(run *runner, f *reproduce.Sheet) error {
		x := run.byLoad()
		c := f.Chart(f.Figure, "RAMSIS, Figure "+f.Figure+": "+title, 2)
		up, down := upAndDown(fmt.Sprint(workers, " workers"), x.label)
		c.Add(up, down)
		for _, rate := range x.values {
			for _, v := range list {
				s := reproduce.System(v.system)
				if v.levels != 0 {
					s.Name, s.Options.Policies.Levels = v.label, v.levels
				}
				at := a4Setup
				at.workers, at.modelSet = workers, v.modelSet
				r := run.simulation(at, s, x.at(&at, rate))
				reproduce.AddRows(f.At("load", rate, "workers", workers), v.label, r, quantities)
				drawPoint(up, down, v.label, rate, r, satisfiableViolations)
			}
		}
		return nil
	}
}
