package ramsis

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	planner "github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// table2Row is a row of Table 2: the time that the authors needed to compute a policy, in s; NaN where they gave
// up after a day.
type table2Row struct {
	modelSet modelSet
	levels   int // of slack; 0 means model-based
	variable bool
	took     float64
}

var never = math.NaN()

var table2 = []table2Row{
	{pareto, 0, true, 3693.53}, {pareto, 100, true, 3014.89}, {pareto, 0, false, 115.50}, {pareto, 100, false, 132.20},
	{pareto, 10, false, 14.62},
	{dense, 0, false, never}, {dense, 100, true, never}, {dense, 100, false, 1355.09}, {dense, 10, false, 148.87},
}

// problem returns the problem of a row: the policy of one of 60 workers at 2,000 queries/s.
func (g table2Row) problem(slo time.Duration) (*planner.Worker, error) {
	at := a4Setup
	at.modelSet, at.slo = g.modelSet, slo
	list, err := at.models()
	if err != nil {
		return nil, err
	}
	w := &planner.Worker{
		SLO: at.slo, Workers: at.workers, Arrivals: planner.Poisson(2000), MaxQueue: 32, Levels: g.levels,
		Variable: g.variable,
	}
	var all []planner.Model
	for v, m := range list {
		if m.took[0] <= at.slo {
			all = append(all, planner.Model{
				Variant: serving.VariantID(v), Accuracy: m.accuracy / 100, Latency: m.took[:],
			})
		}
	}
	w.Models = planner.Pareto(all)
	return w, nil
}

func (g table2Row) name() string {
	out := "MD"
	if g.levels > 0 {
		out = fmt.Sprintf("FLD D = %d", g.levels)
	}
	if g.variable {
		return out + ", variable"
	}
	return out + ", maximal"
}

// figureT2 measures the time to compute a policy, on this machine.
func figureT2(run *runner, f *reproduce.Sheet) error {
	var machine sync.Mutex // one at a time, as they would slow each other down
	for _, slo := range []time.Duration{150 * ms, 500 * ms} {
		for _, g := range table2 {
			t := reproduce.Add(run.Runner, fmt.Sprintf("policy: %s, %s, SLO %v", g.modelSet, g.name(), slo), 1<<20, 1,
				func(ctx context.Context, _ uint64) (float64, error) {
					w, err := g.problem(slo)
					if err != nil {
						return 0, err
					}
					machine.Lock()
					defer machine.Unlock()
					begun := time.Now()
					_, err = w.Solve(ctx)
					return time.Since(begun).Seconds(), err
				})
			models := 9
			if g.modelSet == dense {
				models = 60
			}
			f.At("models", models, "slo", slo).Row(g.name(), "making a policy", "s", reproduce.All(t)).
				Published(g.took, "Table 2, B = 29")
		}
	}
	return nil
}
