package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
	planner "github.com/sluice-serving/sluice/papers/scrooge"
)

// costTolerance is the relative difference up to which costs are equal but for rounding.
const costTolerance = 1e-6

// published10 is from §4.3: the share of decisions that cost no more than those of brute force, and the most that one
// costs above them, both in per cent.
var published10 = map[string][2]float64{"as written": {85, 3}, "greedy": {80, 5}}

// costRatios are relative costs of allocations over the decisions of a session.
type costRatios struct {
	ratios  [][]float64 // by method, then by decision: cost over the least
	checked []float64   // exact allocation over brute force, with few modes
}

// ratio returns cost/least, 1 where they are equal but for rounding.
func ratio(cost, least float64) float64 {
	if math.Abs(cost/least-1) <= costTolerance {
		return 1
	}
	return cost / least
}

// fewModes reports whether a mode is one of the few that brute force can handle. All modes are too many, as in the
// paper ("over 10 s").
func fewModes(m *planner.Mode) bool {
	return (m.Batch == 1 || m.Batch == 4) && (m.Slots == 1 || m.Slots == 3)
}

// checkBrute compares exact allocation with brute force, where brute force is possible.
func (c *costRatios) checkBrute(ctx context.Context, p *planner.Problem) error {
	brute, err := planner.BruteForce(ctx, p)
	if err != nil {
		return ctx.Err() // too large, or nothing is in time
	}
	exact, err := planner.Exact(p)
	if err == nil {
		c.checked = append(c.checked, ratio(exact.Cost, brute.Cost))
	}
	return err
}

// figure10 compares the costs of allocations with the least possible, over the decisions of sessions. Exact allocation
// proves the least. It is checked against brute force on the same decisions with few modes.
func figure10(run *runner) error {
	methods := run.methods()
	var tasks []*reproduce.Task // by index in nexusGraphs
	for _, name := range nexusGraphs {
		g := run.graph(name)
		tasks = append(tasks, run.AddTask("allocations of "+name+" over the least", 20, run.Seeds,
			func(ctx context.Context, seed uint64) (any, error) {
				return run.compareCosts(ctx, g, methods, seed)
			}))
	}
	run.Report(func(o *reproduce.Outcome) error {
		p := plot.Panel{Name: "share of the decisions (%)", XName: "cost over the least", Low: math.NaN(), High: 100}
		for k, m := range methods {
			all := pooledRatios(tasks, k)
			p.Lines = append(p.Lines, distribution(m.name, all[0]))
			addRatios10(o, m.name, "all three", all)
			for t, name := range nexusGraphs {
				addRatios10(o, m.name, name, pooledRatios(tasks[t:t+1], k))
			}
		}
		run.addChecked10(o, tasks)
		addChart(o, "10", "10: cost over the least, over the decisions of sessions", 1, p)
		return nil
	})
	return nil
}

// compareCosts allocates with every method for decisions of a session.
func (run *runner) compareCosts(ctx context.Context, g *graph, methods []method, seed uint64) (*costRatios, error) {
	decisions, err := run.sampleDecisions(g, seed)
	if err != nil {
		return nil, err
	}
	out := &costRatios{ratios: make([][]float64, len(methods))}
	for _, d := range decisions {
		p := testbedMarket.problem(g, g.objective, d.rates)
		best, err := exact(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s asked for %v: %w", g.name, d.rates, err)
		}
		for k, m := range methods {
			a, err := m.by(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s asked for %v, %s: %w", g.name, d.rates, m.name, err)
			}
			// A cost that was not proven to be the least is compared with its bound.
			out.ratios[k] = append(out.ratios[k], ratio(a.Cost, best.Bound))
		}
		if err := out.checkBrute(ctx, p.Only(fewModes)); err != nil {
			return nil, fmt.Errorf("%s asked for %v: %w", g.name, d.rates, err)
		}
	}
	return out, nil
}

// pooledRatios returns the ratios of methods[k] in all tasks together, by seed, in rising order.
func pooledRatios(tasks []*reproduce.Task, k int) [][]float64 {
	out := make([][]float64, len(tasks[0].Results))
	for seed := range out {
		for _, t := range tasks {
			out[seed] = append(out[seed], t.Results[seed].(*costRatios).ratios[k]...)
		}
		slices.Sort(out[seed])
	}
	return out
}

// distribution draws the share of numbers, which are in rising order, that are at most x, in per cent.
func distribution(name string, sorted []float64) plot.Line {
	line := plot.Line{Name: name}
	for i, x := range sorted {
		line.X, line.Y = append(line.X, x), append(line.Y, 100*float64(i+1)/float64(len(sorted)))
	}
	return line
}

// addRatios10 adds the rows of a method for a graph, or for all of them. ratios are by seed, in rising order.
func addRatios10(o *reproduce.Outcome, method, graph string, ratios [][]float64) {
	var equal, most []float64
	for _, sorted := range ratios {
		n := 0
		for n < len(sorted) && sorted[n] == 1 {
			n++
		}
		equal = append(equal, 100*float64(n)/float64(len(sorted)))
		most = append(most, 100*(sorted[len(sorted)-1]-1))
	}
	setting := reproduce.Setting("graph", graph)
	e := row("10", method, "decisions as cheap as the least", "%", setting)
	m := row("10", method, "most over the least", "%", setting)
	if v, ok := published10[method]; ok && graph == "all three" {
		e, m = e.WithPublished(v[0], "§4.3, Figure 10"), m.WithPublished(v[1], "§4.3, Figure 10")
	}
	o.AddRow(e, equal...)
	o.AddRow(m, most...)
}

// addChecked10 adds how far exact allocation is above brute force, over all decisions that brute force can handle.
func (run *runner) addChecked10(o *reproduce.Outcome, tasks []*reproduce.Task) {
	var worst, tried []float64
	for seed := range run.Seeds {
		var checked []float64
		for _, t := range tasks {
			checked = append(checked, t.Results[seed].(*costRatios).checked...)
		}
		if len(checked) > 0 {
			worst, tried = append(worst, 100*(slices.Max(checked)-1)), append(tried, float64(len(checked)))
		}
	}
	setting := reproduce.Setting("modes", "thinned for brute force")
	o.AddRow(row("10", "exact", "decisions tried by brute force", "", setting), tried...)
	o.AddRow(row("10", "exact", "most over brute force", "%", setting), worst...)
}

// sampleDecisions returns at most run.sampled decisions, evenly spread over a session.
func (run *runner) sampleDecisions(g *graph, seed uint64) ([]decision, error) {
	s, err := newSession(g, seed)
	if err != nil {
		return nil, err
	}
	all := s.decisions()
	if len(all) <= run.sampled {
		return all, nil
	}
	out := make([]decision, run.sampled)
	for k := range out {
		out[k] = all[k*len(all)/run.sampled]
	}
	return out, nil
}
