package kairos

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// searchTask adds a task that runs a search, with every seed. It replaces tr.pool. limit is as in explore.
func (run *runner) searchTask(tr trial, x namedSearch, limit int) *reproduce.Task {
	tr.pool = pool{}
	return run.AddTask(fmt.Sprintf("search %s for %v, at most %d", x.name, tr, limit),
		40*run.coarse.queries*run.coarse.runs,
		run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
			return run.explore(ctx, tr, x.make, budget, limit, seed)
		})
}

// percentOfSpace converts a number of evaluations to per cent of the pools under the budget.
func (e *searchRun) percentOfSpace(evaluations float64) float64 {
	return 100 * evaluations / float64(e.space)
}

// bestShare is the part of the highest measured throughput from which a pool counts as the best.
const bestShare = 0.99

// addReachRows adds after how many evaluations a search had the best pool (until), and after how many it ended because
// no pool was open (ended). Both are by run of the search. Shares are of a space as large as e's. published adds the
// published number to a row.
func (e *searchRun) addReachRows(o *reproduce.Outcome, figure, system string, setting map[string]string, until,
	ended []float64, published func(reproduce.Row) reproduce.Row) {
	shares := func(counts []float64) []float64 { return reproduce.Scaled(counts, e.percentOfSpace(1)) }
	o.AddRow(row(figure, system, "evaluations until the best", "", setting), until...)
	o.AddRow(published(row(figure, system, "until the best", "% of the pools", setting)), shares(until)...)
	o.AddRow(row(figure, system, "evaluations until nothing is open", "", setting), ended...)
	o.AddRow(published(row(figure, system, "until nothing is open", "% of the pools", setting)), shares(ended)...)
}

// figure10 searches the best pool of every rule by Algorithm 1 with the paper's bound (§8.3), that of Kairos's rule
// also with the bound of our linear program. The paper does not say whether it counts all evaluations or those until
// the best pool, so there are rows for both.
func figure10(run *runner) error {
	type bar struct {
		name, rule string
		search     namedSearch
	}
	var columns []bar
	for _, rule := range comparedRules() {
		if rule != kairosRule {
			columns = append(columns, bar{rule, rule, algorithm1[0]})
		}
	}
	for _, a := range algorithm1 {
		columns = append(columns, bar{a.name, kairosRule, a})
	}
	all := make(map[string][]*reproduce.Task)
	for _, m := range models {
		for _, b := range columns {
			all[m.name] = append(all[m.name], run.searchTask(trial{
				setup: paperSetup(m.name), system: b.rule, arrivals: wholeMillis,
			}, b.search, 0))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		found, ended := make([]plot.Line, len(columns)), make([]plot.Line, len(columns))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "arrivals": wholeMillis.String()}
			for n, b := range columns {
				t := all[m.name][n]
				until := reproduce.Each(t, func(e *searchRun) float64 {
					return float64(e.evaluationsUntil(bestShare * e.rates[e.best()]))
				})

				count := reproduce.Each(t, func(e *searchRun) float64 { return float64(len(e.pools)) })
				t.Results[0].(*searchRun).addReachRows(o, "10", b.name, setting, until, count,
					func(r reproduce.Row) reproduce.Row {
						if b.rule == kairosRule {
							r = r.WithPublished(1, "§8.3, less than")
						}
						return r
					})
				o.AddRow(row("10", b.name, "best throughput", "queries/s", setting),
					reproduce.Each(t, func(e *searchRun) float64 {
						return e.rates[e.best()]
					})...)
				found[n].Name, ended[n].Name = b.name, b.name
				found[n].Y, ended[n].Y = append(found[n].Y, reproduce.Mean(until)),
					append(ended[n].Y, reproduce.Mean(count))
			}
		}
		addChart(o, "10", "10: what Algorithm 1 evaluates", 1,
			reproduce.Bars("evaluations until the best", groups, found...),
			reproduce.Bars("evaluations until nothing is open, log10",
				groups, log10Lines(ended)...))
		return nil
	})
	return nil
}

// log10Lines replaces the Y of lines by their logarithms and returns lines.
func log10Lines(lines []plot.Line) []plot.Line {
	for i := range lines {
		for k := range lines[i].Y {
			lines[i].Y[k] = math.Log10(lines[i].Y[k])
		}
	}
	return lines
}
