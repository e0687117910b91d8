package scrooge

import (
	"context"
	"fmt"
	"math"
	"slices"

	planner "github.com/sluice-serving/sluice/policy/plan/scrooge"
	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// same tells that costs are equal but for rounding.
const same = 1e-6

// published10 is what §4.3 says: the share of decisions that cost no more than those of brute force, in per cent, and the
// most that one costs over them.
var published10 = map[string][2]float64{"as written": {85, 3}, "greedy": {80, 5}}

// figure10 is what allocations cost over the cheapest that there are, over the decisions of sessions.
func figure10(l *lab) error {
	methods := l.methods()
	var tasks []*reproduce.Task
	for _, name := range compared {
		g := l.graph(name)
		tasks = append(tasks, l.Do("allocations of "+name+" against brute force", 20, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
			all, err := l.sample(g, seed)
			if err != nil {
				return nil, err
			}
			out := make([][]float64, len(methods))
			for _, d := range all {
				p := testbed.problem(g, g.objective, d.asked)
				best, err := planner.Brute(ctx, p)
				if err != nil {
					return nil, fmt.Errorf("%s asked for %v: %w", g.name, d.asked, err)
				}
				for k, m := range methods {
					a, err := m.by(ctx, p)
					if err != nil {
						return nil, fmt.Errorf("%s asked for %v, %s: %w", g.name, d.asked, m.name, err)
					}
					out[k] = append(out[k], a.Cost/best.Cost)
				}
			}
			return out, nil
		}))
	}
	l.After(func(o *reproduce.Outcome) error {
		p := plot.Panel{Name: "share of the decisions (%)", XName: "cost over that of brute force", Low: 0, High: 100}
		for k, m := range methods {
			line := plot.Line{Name: m.name}
			for t, name := range append([]string{"all three"}, compared...) {
				var equal, most []float64
				for seed := range l.Seeds {
					var all []float64
					for of, x := range tasks {
						if t == 0 || of == t-1 {
							all = append(all, x.Done[seed].([][]float64)[k]...)
						}
					}
					slices.Sort(all)
					n := 0
					for n < len(all) && all[n] <= 1+same {
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
				e, w := row("10", m.name, "decisions as cheap as by brute force", "%", at), row("10", m.name, "most over brute force", "%", at)
				if v, ok := published10[m.name]; ok && t == 0 {
					e, w = said(e, v[0], "§4.3, Figure 10"), said(w, v[1], "§4.3, Figure 10")
				}
				o.Add(e, equal...)
				o.Add(w, most...)
			}
			p.Lines = append(p.Lines, line)
		}
		p.Low = math.NaN()
		chart(o, "10", "10: cost over brute force's, over the decisions of sessions", 1, p)
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
