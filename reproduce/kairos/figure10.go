package kairos

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// wantSearch has a search run with every seed.
func (l *lab) wantSearch(q question, name string, search searching, limit int) *reproduce.Task {
	q.pool = pool{}
	return l.Do(fmt.Sprintf("search %s for %v, at most %d", name, q, limit), 40*coarse.queries*coarse.runs, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return l.explore(ctx, q, search, budget, limit, seed)
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
func (e *exploration) share(evaluations int) float64 {
	return 100 * float64(evaluations) / float64(e.space)
}

// figure10 has every rule's best pool searched by Algorithm 1 (§8.3).
func figure10(l *lab) error {
	rules := rules()
	all := make(map[question]*reproduce.Task)
	ask := func(model, rule string) question { return question{setup: at(model), system: rule, arrivals: whole} }
	for _, m := range models {
		for _, rule := range rules {
			all[ask(m.name, rule)] = l.wantSearch(ask(m.name, rule), "bounded", bounded, 0)
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		lines := make([]plot.Line, len(rules))
		var groups []string
		for _, m := range models {
			groups = append(groups, m.name)
			setting := map[string]string{"model": m.name, "arrivals": whole.String()}
			for n, rule := range rules {
				t := all[ask(m.name, rule)]
				system := rule
				ended := row("10", system, "evaluated in all", "% of the pools", setting)
				if rule == "kairos" {
					ended = said(ended, 1, "§8.3, less than")
				}
				found := explored(t, func(e *exploration) float64 { return e.share(e.top() + 1) })
				o.Add(row("10", system, "evaluations until the best", "", setting), explored(t, func(e *exploration) float64 { return float64(e.top() + 1) })...)
				o.Add(row("10", system, "until the best", "% of the pools", setting), found...)
				o.Add(row("10", system, "evaluations in all", "", setting), explored(t, func(e *exploration) float64 { return float64(len(e.pools)) })...)
				o.Add(ended, explored(t, func(e *exploration) float64 { return e.share(len(e.pools)) })...)
				o.Add(row("10", system, "best throughput", "queries/s", setting), explored(t, func(e *exploration) float64 { return e.rates[e.top()] })...)
				lines[n].Name = rule
				lines[n].Y = append(lines[n].Y, math.Log10(mean(explored(t, func(e *exploration) float64 { return e.share(len(e.pools)) }))))
			}
		}
		c := bars("log10 of the evaluated share of the pools (%)", groups, lines...)
		c.Low = math.NaN()
		chart(o, "10", "10: what Algorithm 1 evaluates", 1, c)
		return nil
	})
	return nil
}
