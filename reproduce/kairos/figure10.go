package kairos

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// wantSearch has a search run with every seed.
func (l *lab) wantSearch(q question, x searcher, limit int) *reproduce.Task {
	q.pool = pool{}
	return l.Do(fmt.Sprintf("search %s for %v, at most %d", x.name, q, limit), 40*l.coarse.queries*l.coarse.runs,
		l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
			return l.explore(ctx, q, x.make, budget, limit, seed)
		})
}

// explored takes a number from what was explored with every seed.
func explored(t *reproduce.Task, f func(*exploration) float64) []float64 {
	out := make([]float64, len(t.Done))
	for i, d := range t.Done {
		out[i] = f(d.(*exploration))
	}
	return out
}

// share is a number of evaluations in per cent of the space.
func (e *exploration) share(evaluations float64) float64 {
	return 100 * evaluations / float64(e.space)
}

// optimal is which part of the best throughput that was measured counts as the best.
const optimal = 0.99

// reach notes after how many evaluations a search had the best pool, and after how many nothing was open, in a space
// like e's. published gives rows what was published.
func (e *exploration) reach(o *reproduce.Outcome, figure, system string, setting map[string]string, until,
	ended []float64, published func(reproduce.Row) reproduce.Row) {
	shares := func(counts []float64) []float64 { return times(counts, e.share(1)) }
	o.Add(row(figure, system, "evaluations until the best", "", setting), until...)
	o.Add(published(row(figure, system, "until the best", "% of the pools", setting)), shares(until)...)
	o.Add(row(figure, system, "evaluations until nothing is open", "", setting), ended...)
	o.Add(published(row(figure, system, "until nothing is open", "% of the pools", setting)), shares(ended)...)
}

// figure10 has every rule's best pool searched by Algorithm 1 with the paper's bound (§8.3), and Kairos's with ours
// too. What the paper counts is not said: all evaluations, or those until the best.
func figure10(l *lab) error {
	type bar struct {
		name, rule string
		search     searcher
	}
	var columns []bar
	for _, rule := range rules() {
		if rule != own {
			columns = append(columns, bar{rule, rule, algorithm1[0]})
		}
	}
	for _, a := range algorithm1 {
		columns = append(columns, bar{a.name, own, a})
	}
	all := make(map[string][]*reproduce.Task)
	for _, m := range models {
		for _, b := range columns {
			all[m.name] = append(all[m.name], l.wantSearch(question{
				setup: at(m.name), system: b.rule, arrivals: whole,
			}, b.search, 0))
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		found, ended := make([]plot.Line, len(columns)), make([]plot.Line, len(columns))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "arrivals": whole.String()}
			for n, b := range columns {
				t := all[m.name][n]
				until := explored(t, func(e *exploration) float64 {
					return float64(e.until(optimal * e.rates[e.top()]))
				})
				count := explored(t, func(e *exploration) float64 { return float64(len(e.pools)) })
				t.Done[0].(*exploration).reach(o, "10", b.name, setting, until, count,
					func(r reproduce.Row) reproduce.Row {
						if b.rule == own {
							r = said(r, 1, "§8.3, less than")
						}
						return r
					})
				o.Add(row("10", b.name, "best throughput", "queries/s", setting),
					explored(t, func(e *exploration) float64 {
						return e.rates[e.top()]
					})...)
				found[n].Name, ended[n].Name = b.name, b.name
				found[n].Y, ended[n].Y = append(found[n].Y, mean(until)), append(ended[n].Y, mean(count))
			}
		}
		chart(o, "10", "10: what Algorithm 1 evaluates", 1,
			bars("evaluations until the best", groups, found...), bars("evaluations until nothing is open, log10",
				groups, logs(ended)...))
		return nil
	})
	return nil
}

// logs are lines with the logarithms of their numbers.
func logs(lines []plot.Line) []plot.Line {
	for i := range lines {
		for k := range lines[i].Y {
			lines[i].Y[k] = math.Log10(lines[i].Y[k])
		}
	}
	return lines
}
