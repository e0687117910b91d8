package kairos

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// searchers of §8.3, all with the pruning of pools within an evaluated one; annealing is that of Figure 2.
var searchers = []struct {
	name string
	make searching
}{{"kairos+", bounded}, {"bayes", bayes}, {"random", random}, {"genetic", genetic}, {"annealing", annealing}}

// optimal is which part of the best pool's throughput counts as found: what is measured coarsely twice differs by as much.
const optimal = 0.99

// figure11 counts what every search evaluates until it has Algorithm 1's pool, or one as good, for Kairos's rule (§8.3). Searches
// that draw by chance run several times on what is measured once.
func figure11(l *lab) error {
	const draws = 2
	all := make(map[string]*reproduce.Task)
	for _, m := range models {
		q := question{setup: at(m.name), system: own, arrivals: whole}
		all[m.name] = l.Do(fmt.Sprintf("searches for %v", q), 400*coarse.queries*coarse.runs, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
			first, err := l.explore(ctx, q, bounded, budget, 0, seed)
			if err != nil {
				return nil, err
			}
			want := optimal * first.rates[first.top()]
			counts := [][]float64{{first.share(len(first.pools))}}
			for _, s := range searchers[1:] {
				var each []float64
				for n := range uint64(draws) {
					e, err := l.exploreUntil(ctx, q, s.make, want, seed, seed*draws+n)
					if err != nil {
						return nil, err
					}
					each = append(each, e.share(len(e.pools)))
				}
				counts = append(counts, each)
			}
			return counts, nil
		})
	}
	l.After(func(o *reproduce.Outcome) error {
		lines := make([]plot.Line, len(searchers))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "rule": own, "arrivals": whole.String()}
			for n, s := range searchers {
				var means []float64
				for _, d := range all[m.name].Done {
					means = append(means, mean(d.([][]float64)[n]))
				}
				r := row("11", s.name, "evaluated", "% of the pools", setting)
				if n == 0 {
					r = said(r, 1, "§8.3, less than")
				}
				o.Add(r, means...)
				lines[n].Name = s.name
				lines[n].Y = append(lines[n].Y, mean(means))
			}
		}
		chart(o, "11", "11: what searches evaluate until they have the best pool", 1, bars("evaluated pools (%)", groups, lines...))
		return nil
	})
	return nil
}
