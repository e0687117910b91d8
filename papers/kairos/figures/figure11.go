package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// allSearches are the searches of §8.3. All of them prune pools within an evaluated one. Annealing is that of Figure 2.
var allSearches = append(slices.Clone(algorithm1), namedSearch{"bayes", bayes}, namedSearch{"random", random},
	namedSearch{"genetic", genetic}, namedSearch{"annealing", annealing})

// figure11 counts what every search evaluates for Kairos's rule (§8.3): until it has a pool as good as the best that
// any of them evaluates, and until no pool is open, when the search knows that it has it. Random searches run several
// times. Each pool is measured once.
func figure11(run *runner) error {
	all := make(map[string][]*reproduce.Task) // by model, then by index in allSearches
	for _, m := range models {
		for n, x := range allSearches {
			all[m.name] = append(all[m.name], run.repeatedSearchTask(m.name, x, n < len(algorithm1)))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		found, ended := make([]plot.Line, len(allSearches)), make([]plot.Line, len(allSearches))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "rule": kairosRule, "arrivals": wholeMillis.String()}
			most := highestRates(all[m.name])
			known, less := countNonMonotone(all[m.name])
			o.AddRow(row("11", "all", "measured", "pools", setting), known...)
			o.AddRow(row("11", "all", "5 % less than a part of theirs", "pools", setting), less...)
			for n, x := range allSearches {
				until, count := addSearch11(o, x.name, n < len(algorithm1), setting, all[m.name][n], most)
				found[n].Name, ended[n].Name = x.name, x.name
				found[n].Y = append(found[n].Y, reproduce.Mean(until))
				ended[n].Y = append(ended[n].Y, reproduce.Mean(count))
			}
		}
		o.Notes = append(o.Notes,
			"Figures 10 and 11: a search has the best once it has evaluated a pool within 1 % of the highest "+
				"throughput that was measured. It knows it only when nothing is open: what it has not evaluated is "+
				"within an evaluated pool, or has no bound above the best. The first is the paper's rule and not "+
				"always right here: some pools carry less than a part of theirs, as the rows count.")
		addChart(o, "11", "11: what searches evaluate", 1,
			reproduce.Bars("evaluations until the best", groups, found...),
			reproduce.Bars("evaluations until nothing is open", groups, ended...))
		return nil
	})
	return nil
}

// repeatedSearchTask adds a task that runs a search on a model, with every seed: run.draws times, or once if it is not
// random. Its results are of type []*searchRun.
func (run *runner) repeatedSearchTask(model string, x namedSearch, deterministic bool) *reproduce.Task {
	tr := trial{setup: paperSetup(model), system: kairosRule, arrivals: wholeMillis}
	draws := run.draws
	if deterministic {
		draws = 1
	}
	return run.AddTask(fmt.Sprintf("%d searches %s for %v", draws, x.name, tr), 100*run.coarse.queries*run.coarse.runs,
		run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
			out := make([]*searchRun, draws)
			for d := range out {
				var err error
				out[d], err = run.exploreWith(ctx, tr, x.make, budget, 0, seed, seed*draws+uint64(d))
				if err != nil {
					return nil, err
				}
			}
			return out, nil
		})
}

// highestRates returns the highest rate that any search measured, by seed.
func highestRates(tasks []*reproduce.Task) []float64 {
	out := make([]float64, len(tasks[0].Results))
	for _, t := range tasks {
		for seed, d := range t.Results {
			for _, e := range d.([]*searchRun) {
				out[seed] = max(out[seed], e.rates[e.best()])
			}
		}
	}
	return out
}

// addSearch11 adds the rows of a search on a model. It returns, by run of the search, the evaluations until a pool as
// good as most, which is by seed, and all evaluations.
func addSearch11(o *reproduce.Outcome, name string, published bool, setting map[string]string, t *reproduce.Task,
	most []float64) (until, count []float64) {
	var missed []float64
	var last *searchRun
	for seed, d := range t.Results {
		for _, e := range d.([]*searchRun) {
			last = e
			count = append(count, float64(len(e.pools)))
			if k := e.evaluationsUntil(bestShare * most[seed]); k > 0 {
				until, missed = append(until, float64(k)), append(missed, 0)
			} else {
				until, missed = append(until, float64(len(e.pools))), append(missed, 100)
			}
		}
	}
	last.addReachRows(o, "11", name, setting, until, count, func(r reproduce.Row) reproduce.Row {
		if published {
			r = r.WithPublished(1, "§8.3, less than")
		}
		return r
	})
	o.AddRow(row("11", name, "ended without it", "% of the searches", setting), reproduce.Mean(missed))
	return until, count
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
				if a < 0.95*b && q.counts().SubsetOf(p.counts()) {
					n++
					break
				}
			}
		}
		known, less = append(known, float64(len(rates))), append(less, float64(n))
	}
	return known, less
}
