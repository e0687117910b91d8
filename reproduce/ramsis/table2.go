package ramsis

import (
	"context"
	"fmt"
	"sync"
	"time"

	planner "github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// generated is a row of Table 2: how long making a policy took the authors, in s; 0 where they gave up after a day.
type generated struct {
	choice   choice
	levels   int // 0: model-based
	variable bool
	took     float64
}

var table2Rows = []generated{
	{pareto, 0, true, 3693.53}, {pareto, 100, true, 3014.89}, {pareto, 0, false, 115.50}, {pareto, 100, false, 132.20},
	{pareto, 10, false, 14.62},
	{dense, 0, false, 0}, {dense, 100, true, 0}, {dense, 100, false, 1355.09}, {dense, 10, false, 148.87},
}

// generation is the problem of one row: the policy of one of 60 workers at 2,000 queries/s.
func (g generated) problem(slo time.Duration) (*planner.Worker, error) {
	at := a4
	at.choice, at.slo = g.choice, slo
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

func (g generated) name() string {
	out := "MD"
	if g.levels > 0 {
		out = fmt.Sprintf("FLD D = %d", g.levels)
	}
	if g.variable {
		return out + ", variable"
	}
	return out + ", maximal"
}

// table2 is how long a policy takes to be made. It is not among what is run unless it is asked for by name: times are
// those of the machine, so that the same seed does not give the same rows.
func table2(l *lab) error {
	var one sync.Mutex // what runs beside would be measured, too
	for _, slo := range []time.Duration{150 * ms, 500 * ms} {
		for _, g := range table2Rows {
			t := l.Do(fmt.Sprintf("policy: %s, %s, SLO %v", g.choice, g.name(), slo), 1<<20, 1,
				func(ctx context.Context, _ uint64) (any, error) {
					w, err := g.problem(slo)
					if err != nil {
						return nil, err
					}
					one.Lock()
					defer one.Unlock()
					begun := time.Now()
					_, err = w.Solve(ctx)
					return time.Since(begun).Seconds(), err
				})
			l.After(func(o *reproduce.Outcome) error {
				models := 9
				if g.choice == dense {
					models = 60
				}
				r := row("T2", g.name(), "making a policy", "s", map[string]string{
					"models": fmt.Sprint(models), "slo": slo.String(),
				})
				if g.took > 0 {
					r = known(r, g.took, "Table 2, B = 29")
				}
				o.Add(r, t.Done[0].(float64))
				return nil
			})
		}
	}
	return nil
}
