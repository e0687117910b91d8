package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// searchers of §8.3, all with the pruning of pools within an evaluated one; annealing is that of Figure 2.
var searchers = append(slices.Clone(algorithm1), searcher{"bayes", bayes}, searcher{"random", random},
	searcher{"genetic", genetic}, searcher{"annealing", annealing})

// figure11 counts what every search evaluates for Kairos's rule (§8.3): until it has the best pool that any of them
// evaluates, or one as good, and until nothing is open, as only then it knows. Searches that draw by chance run several
// times; a pool is measured once.
func figure11(l *lab) error {
	all := make(map[string][]*reproduce.Task)
	for _, m := range models {
		q := question{setup: at(m.name), system: own, arrivals: whole}
		for n, x := range searchers {
			draws := l.draws
			if n < len(algorithm1) {
				draws = 1 // they do not draw
			}
			all[m.name] = append(all[m.name], l.Do(fmt.Sprintf("%d searches %s for %v", draws, x.name, q),
				100*l.coarse.queries*l.coarse.runs, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
					out := make([]*exploration, draws)
					for d := range out {
						var err error
						if out[d], err = l.exploring(ctx, q, x.make, budget, 0, seed, seed*draws+uint64(d)); err !=
							nil {
							return nil, err
						}
					}
					return out, nil
				}))
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		found, ended := make([]plot.Line, len(searchers)), make([]plot.Line, len(searchers))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "rule": own, "arrivals": whole.String()}
			most := make([]float64, l.Seeds)
			for _, t := range all[m.name] {
				for seed, d := range t.Done {
					for _, e := range d.([]*exploration) {
						most[seed] = max(most[seed], e.rates[e.top()])
					}
				}
			}
			known, less := harmed(all[m.name])
			o.Add(row("11", "all", "measured", "pools", setting), known...)
			o.Add(row("11", "all", "5 % less than a part of theirs", "pools", setting), less...)
			for n, x := range searchers {
				var until, count, missed []float64
				var any *exploration
				for seed, d := range all[m.name][n].Done {
					for _, e := range d.([]*exploration) {
						any = e
						count = append(count, float64(len(e.pools)))
						if k := e.until(optimal * most[seed]); k > 0 {
							until = append(until, float64(k))
							missed = append(missed, 0)
						} else {
							until = append(until, float64(len(e.pools)))
							missed = append(missed, 100)
						}
					}
				}
				any.reach(o, "11", x.name, setting, until, count, func(r reproduce.Row) reproduce.Row {
					if n < len(algorithm1) {
						r = said(r, 1, "§8.3, less than")
					}
					return r
				})
				o.Add(row("11", x.name, "ended without it", "% of the searches", setting), mean(missed))
				found[n].Name, ended[n].Name = x.name, x.name
				found[n].Y, ended[n].Y = append(found[n].Y, mean(until)), append(ended[n].Y, mean(count))
			}
		}
		o.Notes = append(o.Notes,
			"Figures 10 and 11: a search has the best once it has evaluated a pool within 1 % of the highest "+
				"throughput that was measured. It knows it only when nothing is open: what it has not evaluated is "+
				"within an evaluated pool, or has no bound above the best. The first is the paper's rule and not "+
				"always right here: some pools carry less than a part of theirs, as the rows count.")
		chart(o, "11", "11: what searches evaluate", 1,
			bars("evaluations until the best", groups, found...), bars("evaluations until nothing is open", groups,
				ended...))
		return nil
	})
	return nil
}

// harmed counts, by seed, the pools that searches measured, and those among them that carry 5 % less than another that
// is part of them: where there are such, pruning what is part of an evaluated pool may prune the best.
func harmed(tasks []*reproduce.Task) (known, less []float64) {
	for seed := range tasks[0].Done {
		rates := make(map[pool]float64)
		for _, t := range tasks {
			for _, e := range t.Done[seed].([]*exploration) {
				for i, p := range e.pools {
					rates[p] = e.rates[i]
				}
			}
		}
		n := 0
		for p, a := range rates {
			for q, b := range rates {
				if a < 0.95*b && q.of().SubsetOf(p.of()) {
					n++
					break
				}
			}
		}
		known, less = append(known, float64(len(rates))), append(less, float64(n))
	}
	return known, less
}
