package bound

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// Result is a bound.
type Result struct {
	// Utility is the highest utility of a run: the sum over queries in time of weight * accuracy / best accuracy of the
	// app, divided by the sum of the weights of all queries offered.
	Utility float64
	// InTime is the share of the queries that are in time at that optimum. A run can have more, with less accuracy.
	InTime float64
	// Window is the length of a window. Windows has for each window the bound of the queries that arrive in it.
	Window  time.Duration
	Windows []Window
}

// Window is the bound's optimum in one window.
type Window struct {
	Start   serving.Time
	Offered int
	Utility float64
}

// relaxed solves a bound's program. On some small ones presolve never ends, and large ones take longer with it (world
// 13 with lengths 36 s instead of 3).
var relaxed = milp.Limits{Relax: true, NoPresolve: true}

// Utility returns an upper bound on the utility of every system with a load. An error is ErrTooLarge, the context's or
// the solver's.
func Utility(ctx context.Context, solver milp.Solver, w Model, queries []Query, o Options) (*Result, error) {
	best := make([]float64, len(w.Spec.Apps))
	for a := range best {
		best[a] = max(w.Spec.BestAccuracy(serving.AppID(a)), math.SmallestNonzeroFloat64)
	}
	p, err := fit(&w, queries, o, func(a serving.AppID, accuracy float64) float64 {
		return weight(w.Spec, a) * accuracy / best[a]
	})
	if err != nil {
		return nil, err
	}
	if len(p.Columns) == 0 {
		return p.result(nil, queries), nil
	}
	s, err := solver.Solve(ctx, &p.Program, relaxed)
	if err != nil {
		return nil, fmt.Errorf("bound: %w", err)
	}
	if s.Status != milp.Optimal {
		return nil, fmt.Errorf("bound: the program of %d rows and %d columns is %v",
			len(p.Rows), len(p.Columns), s.Status)
	}
	return p.result(s.Values, queries), nil
}

func weight(spec *serving.Spec, a serving.AppID) float64 {
	if w := spec.Apps[a].Weight; w > 0 {
		return w
	}
	return 1
}

// result reads the program's optimum.
func (p *program) result(values []float64, queries []Query) *Result {
	r := &Result{Window: p.width, Windows: make([]Window, p.windows)}
	offered := make([]float64, p.windows) // weights
	total, all, count := 0.0, 0.0, 0.0
	for i := range queries {
		w := p.window(queries[i].Arrived)
		n := queries[i].count()
		r.Windows[w].Offered += int(n + 0.5)
		count += n
		x := n * weight(p.w.Spec, queries[i].App)
		offered[w] += x
		all += x
	}
	inTime := 0.0
	for c := range p.served {
		for _, s := range p.served[c] {
			r.Windows[p.classes[c].from].Utility += values[s.column] * p.Columns[s.column].Objective
			if !s.second {
				inTime += values[s.column]
			}
		}
	}
	for w := range r.Windows {
		x := &r.Windows[w]
		x.Start = p.start.Add(time.Duration(w) * p.width)
		total += x.Utility
		if offered[w] > 0 {
			x.Utility /= offered[w]
		}
	}
	if all > 0 {
		r.Utility, r.InTime = total/all, inTime/count
	}
	return r
}
