package kairos

import (
	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// mixed are the pools of Figures 1 and 3, of types G1, C1 and C2. The last costs 2.552 $/h, a little more than the
// budget, in the paper too.
var mixed = []pool{{3, 1, 3}, {2, 0, 9}, {1, 4, 2}}

// both ways in which queries come.
var both = []arrivals{whole, poisson}

// scale is what the throughput of a homogeneous pool is multiplied with, to give it the part of the budget that pays no
// further machine (§4, §8.1).
func scale(p pool, budget float64) float64 { return budget / p.cost() }

// figure1 compares pools of RM2 under Ribbon's rule (§4).
func figure1(l *lab) error {
	alone := homogeneous(budget)
	type run struct {
		base  measured
		mixed []measured
	}
	var runs []run
	for _, by := range both {
		q := question{setup: at("rm2"), pool: alone, system: "fcfs", arrivals: by}
		r := run{base: l.want(q, l.fine)}
		for _, p := range mixed {
			q.pool = p
			r.mixed = append(r.mixed, l.want(q, l.fine))
		}
		runs = append(runs, r)
	}
	l.After(func(o *reproduce.Outcome) error {
		var groups []string
		lines := make([]plot.Line, len(both))
		for n, by := range both {
			r := runs[n]
			setting := map[string]string{"model": "rm2", "rule": "fcfs", "arrivals": by.String()}
			base := times(r.base.rates(), scale(alone, budget))
			o.Add(row("1", alone.String()+" scaled", throughputRow, "queries/s", setting), base...)
			lines[n] = plot.Line{Name: by.String(), Y: []float64{mean(base)}}
			groups = append(groups[:0], alone.String()+" scaled")
			for i, p := range mixed {
				level(o, "1", p.String(), setting, r.mixed[i].allowed())
				gain := row("1", p.String(), "over homogeneous", "x", setting)
				if i == 0 {
					gain = said(gain, 1.15, "§4")
				}
				o.Add(gain, over(r.mixed[i].rates(), base)...)
				lines[n].Y = append(lines[n].Y, mean(r.mixed[i].rates()))
				groups = append(groups, p.String())
			}
		}
		chart(o, "1", "1: RM2 under Ribbon's rule", 1, bars("throughput (queries/s)", groups, lines...))
		return nil
	})
	return nil
}
