package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// transient is how many evaluations Figure 12 shows after the sizes have changed.
const transient = 20

// figure12 is what every scheme evaluates once the sizes of RM2's queries have become Gaussian (§8.4): Kairos takes a pool, the
// others search, Ribbon's by Bayesian optimisation and those that the paper leaves open by Algorithm 1.
func figure12(l *lab) error {
	changed := setup{model: "rm2", sizes: gaussian, qos: 1}
	s, err := l.service(changed)
	if err != nil {
		return err
	}
	p, err := s.chosen(budget)
	if err != nil {
		return err
	}
	q := question{setup: changed, pool: p, system: own, arrivals: whole}
	kairos := l.want(q, coarse)
	_, oracle, err := s.mostOracle(budget)
	if err != nil {
		return err
	}
	type scheme struct {
		name string
		task *reproduce.Task
	}
	schemes := []scheme{{"kairos+", l.wantSearch(q, "bounded", bounded, transient)}}
	for _, q.system = range rivals() {
		how, by := "bounded", searching(bounded)
		if len(schemes) == 1 {
			how, by = "bayes", bayes
		}
		schemes = append(schemes, scheme{q.system, l.wantSearch(q, how, by, transient)})
	}
	l.After(func(o *reproduce.Outcome) error {
		setting := map[string]string{"model": "rm2", "sizes": gaussian.String(), "arrivals": whole.String()}
		o.Add(row("12", "kairos", "evaluations", "", setting), 0)
		o.Add(row("12", "kairos", "best throughput", "queries/s", setting), kairos.rates()...)
		o.Add(said(row("12", "kairos", "of the oracle", "x", setting), 0.85, "§8.4, at least"), times(kairos.rates(), 1/oracle)...)
		o.Add(row("12", "oracle", "best throughput", "queries/s", setting), oracle)
		flat := plot.Line{Name: "kairos"}
		for i := range transient {
			flat.X, flat.Y = append(flat.X, float64(i+1)), append(flat.Y, mean(kairos.rates()))
		}
		lines := []plot.Line{flat}
		for _, x := range schemes {
			count := row("12", x.name, "evaluations", "", setting)
			if x.name == "kairos+" {
				count = said(count, 8, "§8.4")
			}
			o.Add(count, explored(x.task, func(e *exploration) float64 { return float64(len(e.pools)) })...)
			o.Add(row("12", x.name, "best throughput", "queries/s", setting), explored(x.task, func(e *exploration) float64 { return e.rates[e.top()] })...)
			var reached []float64
			for seed, d := range x.task.Done {
				if n := d.(*exploration).until(kairos.rates()[seed]); n > 0 {
					reached = append(reached, float64(n))
				}
			}
			r := row("12", x.name, "evaluations until as good as kairos", "", setting)
			if c, ok := claims12[x.name]; ok {
				r = said(r, c.value, c.source)
			}
			o.Add(r, reached...)
			e := x.task.Done[0].(*exploration)
			line := plot.Line{Name: x.name}
			for i, rate := range e.rates {
				line.X, line.Y = append(line.X, float64(i+1)), append(line.Y, rate)
			}
			lines = append(lines, line)
		}
		chart(o, "12", fmt.Sprintf("12: RM2 after sizes have become %v", gaussian), 1,
			plot.Panel{Name: "throughput (queries/s)", XName: "evaluation", Lines: lines, Low: 0, High: math.NaN()})
		return nil
	})
	return nil
}

var claims12 = map[string]claim{"clkwrk": {9, "§8.4"}}
