package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"

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
func figure10(run *runner, f *reproduce.Sheet) error {
	methods := run.methods()
	var all []compared // by index in nexusGraphs
	for _, name := range nexusGraphs {
		g := run.graph(name)
		all = append(all, reproduce.Add(run.Runner, "allocations of "+name+" over the least", 20, run.Seeds,
			func(ctx context.Context, seed uint64) (*costRatios, error) {
				return run.compareCosts(ctx, g, methods, seed)
			}))
	}
	p := f.Chart("10", "Scrooge, Figure 10: cost over the least, over the decisions of sessions", 1).
		Panel("share of the decisions (%)", "cost over the least", reproduce.Auto, 100)
	for k, m := range methods {
		p.Curve(m.name, func() (x, y []float64) { return distribution(pooledRatios(all, k)[0]) })
		equal, most := addRatios10(f.At("graph", "all three"), m.name, all, k)
		if v, ok := published10[m.name]; ok {
			equal.Published(v[0], "§4.3, Figure 10")
			most.Published(v[1], "§4.3, Figure 10")
		}
		for t, name := range nexusGraphs {
			addRatios10(f.At("graph", name), m.name, all[t:t+1], k)
		}
	}
	// how far exact allocation is above brute force, over all decisions that brute force can handle
	checked := func(of func([]float64) float64) reproduce.Values {
		return func() (out []float64) {
			for seed := range run.Seeds {
				var v []float64
				for _, c := range all {
					v = append(v, c.Results()[seed].checked...)
				}
				if len(v) > 0 {
					out = append(out, of(v))
				}
			}
			return out
		}
	}
	at := f.At("modes", "thinned for brute force")
	at.Row("exact", "decisions tried by brute force", "", checked(func(v []float64) float64 { return float64(len(v)) }))
	at.Row("exact", "most over brute force", "%",
		checked(func(v []float64) float64 { return 100 * (slices.Max(v) - 1) }))
	return nil
}

// compared are the relative costs of a graph's sessions.
type compared = reproduce.Runs[*costRatios]

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

// pooledRatios returns the ratios of methods[k] in all graphs together, by seed, in rising order.
func pooledRatios(all []compared, k int) [][]float64 {
	out := make([][]float64, len(all[0].Results()))
	for seed := range out {
		for _, c := range all {
			out[seed] = append(out[seed], c.Results()[seed].ratios[k]...)
		}
		slices.Sort(out[seed])
	}
	return out
}

// distribution returns the share of numbers, which are in rising order, that are at most x, in per cent.
func distribution(sorted []float64) (x, y []float64) {
	for i, v := range sorted {
		x, y = append(x, v), append(y, 100*float64(i+1)/float64(len(sorted)))
	}
	return x, y
}

// addRatios10 adds the rows of methods[k] for graphs.
func addRatios10(at reproduce.Place, method string, all []compared, k int) (equal, most *reproduce.Entry) {
	of := func(number func(sorted []float64) float64) reproduce.Values {
		return func() (out []float64) {
			for _, sorted := range pooledRatios(all, k) {
				out = append(out, number(sorted))
			}
			return out
		}
	}
	equal = at.Row(method, "decisions as cheap as the least", "%", of(func(sorted []float64) float64 {
		n := 0
		for n < len(sorted) && sorted[n] == 1 {
			n++
		}
		return 100 * float64(n) / float64(len(sorted))
	}))
	most = at.Row(method, "most over the least", "%", of(func(sorted []float64) float64 {
		return 100 * (sorted[len(sorted)-1] - 1)
	}))
	return equal, most
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
