package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	planner "github.com/sluice-serving/sluice/planner/scrooge"
	"github.com/sluice-serving/sluice/reproduce"
)

// same tells that costs are equal but for rounding.
const same = 1e-6

// published10 is what §4.3 says: the share of decisions that cost no more than those of brute force, in per cent, and
// the most that one costs over them.
var published10 = map[string][2]float64{"as written": {85, 3}, "greedy": {80, 5}}

// compare is what ways to allocate came to over the decisions of a session.
type compare struct {
	ratios  [][]float64 // by method, of costs over the least
	checked []float64   // of the exact one's over brute force's, with a few modes
}

// ratio of costs, 1 where they are equal but for rounding.
func ratio(cost, least float64) float64 {
	if math.Abs(cost/least-1) <= same {
		return 1
	}
	return cost / least
}

// thinned leaves modes of a few configurations: all of them are too many for brute force, here as in the paper ("over
// 10 s").
func thinned(m *planner.Mode) bool {
	return (m.Batch == 1 || m.Batch == 4) && (m.Slots == 1 || m.Slots == 3)
}

// try holds exact allocation against brute force, where that can be.
func (c *compare) try(ctx context.Context, p *planner.Problem) error {
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

// figure10 is what allocations cost over the cheapest that there are, over the decisions of sessions. The cheapest is
// what exact allocation proves, and that is held against brute force on the same decisions with few modes.
func figure10(l *lab) error {
	methods := l.methods()
	var tasks []*reproduce.Task
	for _, name := range compared {
		g := l.graph(name)
		tasks = append(tasks, l.Do("allocations of "+name+" over the least", 20, l.Seeds,
			func(ctx context.Context, seed uint64) (any, error) {
				all, err := l.sample(g, seed)
				if err != nil {
					return nil, err
				}
				out := &compare{ratios: make([][]float64, len(methods))}
				for _, d := range all {
					p := testbed.problem(g, g.objective, d.asked)
					best, err := exactly(ctx, p)
					if err != nil {
						return nil, fmt.Errorf("%s asked for %v: %w", g.name, d.asked, err)
					}
					// What was not proven to be the least is held against its bound.
					least := best.Bound
					for k, m := range methods {
						a, err := m.by(ctx, p)
						if err != nil {
							return nil, fmt.Errorf("%s asked for %v, %s: %w", g.name, d.asked, m.name, err)
						}
						out.ratios[k] = append(out.ratios[k], ratio(a.Cost, least))
					}
					if err := out.try(ctx, p.Only(thinned)); err != nil {
						return nil, fmt.Errorf("%s asked for %v: %w", g.name, d.asked, err)
					}
				}
				return out, nil
			}))
	}
	l.After(func(o *reproduce.Outcome) error {
		p := plot.Panel{Name: "share of the decisions (%)", XName: "cost over the least", Low: 0, High: 100}
		for k, m := range methods {
			line := plot.Line{Name: m.name}
			for t, name := range append([]string{"all three"}, compared...) {
				var equal, most []float64
				for seed := range l.Seeds {
					var all []float64
					for of, x := range tasks {
						if t == 0 || of == t-1 {
							all = append(all, x.Done[seed].(*compare).ratios[k]...)
						}
					}
					slices.Sort(all)
					n := 0
					for n < len(all) && all[n] == 1 {
						n++
					}
					equal, most = append(equal, 100*float64(n)/float64(len(all))), append(most, 100*(all[len(all)-1]-1))
					if t == 0 && seed == 0 {
						for i, x := range all {
							line.X, line.Y = append(line.X, x), append(line.Y, 100*float64(i+1)/float64(len(all)))
						}
					}
				}
				at := setting("graph", name)
				e, w := row("10", m.name, "decisions as cheap as the least", "%", at),
					row("10", m.name, "most over the least", "%", at)
				if v, ok := published10[m.name]; ok && t == 0 {
					e, w = said(e, v[0], "§4.3, Figure 10"), said(w, v[1], "§4.3, Figure 10")
				}
				o.Add(e, equal...)
				o.Add(w, most...)
			}
			p.Lines = append(p.Lines, line)
		}
		var worst, tried []float64
		for seed := range l.Seeds {
			var all []float64
			for _, x := range tasks {
				all = append(all, x.Done[seed].(*compare).checked...)
			}
			if len(all) > 0 {
				worst, tried = append(worst, 100*(slices.Max(all)-1)), append(tried, float64(len(all)))
			}
		}
		at := setting("modes", "thinned for brute force")
		o.Add(row("10", "exact", "decisions tried by brute force", "", at), tried...)
		o.Add(row("10", "exact", "most over brute force", "%", at), worst...)
		p.Low = math.NaN()
		chart(o, "10", "10: cost over the least, over the decisions of sessions", 1, p)
		return nil
	})
	return nil
}

// sample takes decisions of a session, evenly over it.
func (l *lab) sample(g *graph, seed uint64) ([]decision, error) {
	s, err := newSession(g, seed)
	if err != nil {
		return nil, err
	}
	all := s.decisions()
	if len(all) <= l.sampled {
		return all, nil
	}
	out := make([]decision, l.sampled)
	for k := range out {
		out[k] = all[k*len(all)/l.sampled]
	}
	return out, nil
}
