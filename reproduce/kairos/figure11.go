package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// allSearches are the searches of §8.3. All of them prune pools within an evaluated one. Annealing is that of Figure 2.
var allSearches = append(slices.Clone(algorithm1), namedSearch{"bayes", bayes}, namedSearch{"random", random},
	namedSearch{"genetic", genetic}, namedSearch{"annealing", annealing})

// figure11 counts what every search evaluates for Kairos's rule (§8.3): until it has a pool as good as the best that
// any of them evaluates, and until no pool is open, when the search knows that it has it. Random searches run several
// times. Each pool is measured once.
func figure11(run *runner) error {
	all := make(map[string][]*reproduce.Task)
	for _, m := range models {
		tr := trial{setup: paperSetup(m.name), system: kairosRule, arrivals: wholeMillis}
		for n, x := range allSearches {
			draws := run.draws
			if n < len(algorithm1) {
				draws = 1 // these searches are not random
			}
			all[m.name] = append(all[m.name], run.AddTask(fmt.Sprintf("%d searches %s for %v", draws, x.name, tr),
				100*run.coarse.queries*run.coarse.runs, run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
					out := make([]*searchRun, draws)
					for d := range out {
						var err error
						if out[d], err = run.exploreWith(ctx, tr, x.make, budget, 0, seed, seed*draws+uint64(d)); err !=
							nil {
							return nil, err
						}
					}
					return out, nil
				}))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		found, ended := make([]plot.Line, len(allSearches)), make([]plot.Line, len(allSearches))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "rule": kairosRule, "arrivals": wholeMillis.String()}
			most := make([]float64, run.Seeds)
			for _, t := range all[m.name] {
				for seed, d := range t.Results {
					for _, e := range d.([]*searchRun) {
						most[seed] = max(most[seed], e.rates[e.best()])
					}
				}
			}
			known, less := countNonMonotone(all[m.name])
			o.AddRow(row("11", "all", "measured", "pools", setting), known...)
			o.AddRow(row("11", "all", "5 % less than a part of theirs", "pools", setting), less...)
			for n, x := range allSearches {
				var until, count, missed []float64
				var any *searchRun
				for seed, d := range all[m.name][n].Results {
					for _, e := range d.([]*searchRun) {
						any = e
						count = append(count, float64(len(e.pools)))
						if k := e.evaluationsUntil(bestShare * most[seed]); k > 0 {
							until = append(until, float64(k))
							missed = append(missed, 0)
						} else {
							until = append(until, float64(len(e.pools)))
							missed = append(missed, 100)
						}
					}
				}
				any.addReachRows(o, "11", x.name, setting, until, count, func(r reproduce.Row) reproduce.Row {
					if n < len(algorithm1) {
						r = r.WithPublished(1, "§8.3, less than")
					}
					return r
				})
				o.AddRow(row("11", x.name, "ended without it", "% of the searches", setting), reproduce.Mean(missed))
				found[n].Name, ended[n].Name = x.name, x.name
				found[n].Y, ended[n].Y = append(found[n].Y, reproduce.Mean(until)),
					append(ended[n].Y, reproduce.Mean(count))
			}
		}
		o.Notes = append(o.Notes,
			"Figures 10 and 11: a search has the best once it has evaluated a pool within 1 % of the highest "+
				"throughput that was measured. It knows it only when nothing is open: what it has not evaluated is "+
				"within an evaluated pool, or has no bound above the best. The first is the paper's rule and not "+
				"always right here: some pools carry less than a part of theirs, as the rows count.")
		addChart(o, "11", "11: what searches evaluate", 1,
			reproduce.Bars("evaluations until the best", groups, found...),
			reproduce.Bars("evaluations until nothing is open", groups,
				ended...))
		return nil
	})
	return nil
}

// countNonMonotone counts, by seed, the measured pools (known), and those of them that carry 5 % less than a pool
// within them (less). Where there are such pools, pruning all pools within an evaluated one may prune the best.
func countNonMonotone(tasks []*reproduce.Task) (known, less []float64) {
	for seed := range tasks[0].Results {
		rates := make(map[pool]float64)
		for _, t := range tasks {
			for _, e := range t.Results[seed].([]*searchRun) {
				for i, p := range e.pools {
					rates[p] = e.rates[i]
				}
			}
		}
		n := 0
		for p, a := range rates {
			for q, b := range rates {
				if a < 0.95*b && q.counts().PartOf(p.counts()) {
					n++
					break
				}
			}
		}
		known, less = append(known, float64(len(rates))), append(less, float64(n))
	}
	return known, less
}
