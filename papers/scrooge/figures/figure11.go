package scrooge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published11 are upper bounds of the time of the program as written, in ms, with 2 types and with 30 (§4.3).
var published11 = []float64{100, 130}

// published11Brute is the time of brute force, in ms: "over 10 s", over all modes (§4.3).
const published11Brute = 10_000

// fewAtATime names brute force, which is tried on few modes only.
const fewAtATime = "brute force, four modes a type"

// figure11 measures how long allocations take on this machine.
func figure11(run *runner, f *reproduce.Sheet) error {
	c := f.Chart("11", "Scrooge, Figure 11: how long allocations take", 1)
	for n, w := range []struct {
		types int
		*market
	}{{2, &testbedMarket}, {30, &wideMarket}} {
		methods := run.methods()
		if w.types == 2 { // it has no answer for more, as in the paper
			methods = append(methods, method{name: fewAtATime, by: brute})
		}
		// One task, so that nothing else of it runs while times are measured.
		took := reproduce.Add(run.Runner, fmt.Sprint("allocation times with ", w.types, " types"), 100, 1,
			func(ctx context.Context, seed uint64) ([][]float64, error) {
				return run.allocationTimes(ctx, w.market, methods, w.types > 2, seed)
			})
		p := c.Panel(fmt.Sprintf("share of the decisions (%%), %d types", w.types), "ms", 0, 100)
		for k, m := range methods {
			at := f.At("types", w.types)
			add := func(quantity string, of func(sorted []float64) float64) *reproduce.Entry {
				return at.Row(m.name, quantity, "ms", took.Each(func(all [][]float64) float64 { return of(all[k]) }))
			}
			add("median", func(v []float64) float64 { return v[len(v)/2] })
			add("99th percentile", func(v []float64) float64 { return v[min(len(v)*99/100, len(v)-1)] })
			most := add("longest", func(v []float64) float64 { return v[len(v)-1] })
			switch m.name {
			case "as written":
				most.Published(published11[n], "§4.3, Figure 11: within")
			case fewAtATime:
				most.Published(published11Brute, "§4.3: over, with all modes")
			}
			p.Curve(m.name, func() (x, y []float64) {
				x, y = distribution(took.First()[k])
				for i := range x {
					x[i] = max(x[i], 1e-3)
				}
				return x, y
			})
		}
	}
	return nil
}

// allocationTimes returns how long allocations for decisions of sessions take, by method, in ms and in rising order.
// few has integer programs solved for every eighth decision only: HiGHS in WebAssembly takes seconds where Gurobi took
// a tenth of one.
func (run *runner) allocationTimes(ctx context.Context, w *market, methods []method, few bool, seed uint64) (
	[][]float64, error) {
	out := make([][]float64, len(methods))
	for i := range run.graphs {
		g := &run.graphs[i]
		all, err := run.sampleDecisions(g, seed)
		if err != nil {
			return nil, err
		}
		for n, d := range all {
			p := w.problem(g, g.objective, d.rates)
			for k, m := range methods {
				if few && m.solves && n%8 > 0 {
					continue
				}
				begun := time.Now()
				if a, err := m.by(ctx, p); err != nil {
					return nil, fmt.Errorf("%s asked for %v, %s: %w", g.name, d.rates, m.name, err)
				} else if a != nil {
					out[k] = append(out[k], 1000*time.Since(begun).Seconds())
				}
			}
		}
	}
	for k := range out {
		slices.Sort(out[k])
	}
	return out, nil
}
