package kairos

import (
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// mixedPools are the pools of Figures 1 and 3, of types G1, C1 and C2. The last costs 2.552 $/h, a little more than the
// budget, in the paper too.
var mixedPools = []pool{{3, 1, 3}, {2, 0, 9}, {1, 4, 2}}

// bothArrivals are the two kinds of arrivals that the figures compare.
var bothArrivals = []arrivals{wholeMillis, poisson}

// budgetScale is the factor on the throughput of a homogeneous pool that credits it with the rest of the budget, which
// does not pay a further machine (§4, §8.1).
func budgetScale(p pool, budget float64) float64 { return budget / p.cost() }

// figure1 compares mixed pools with the homogeneous one, for RM2 under Ribbon's rule (§4).
func figure1(run *runner) error {
	alone := homogeneous(budget)
	type poolRuns struct {
		base  throughputs
		mixed []throughputs
	}
	var runs []poolRuns
	for _, by := range bothArrivals {
		tr := trial{setup: paperSetup("rm2"), pool: alone, system: "fcfs", arrivals: by}
		r := poolRuns{base: run.throughputTask(tr, run.fine)}
		for _, p := range mixedPools {
			tr.pool = p
			r.mixed = append(r.mixed, run.throughputTask(tr, run.fine))
		}
		runs = append(runs, r)
	}
	run.Report(func(o *reproduce.Outcome) error {
		var groups []string
		lines := make([]plot.Line, len(bothArrivals))
		for n, by := range bothArrivals {
			r := runs[n]
			setting := map[string]string{"model": "rm2", "rule": "fcfs", "arrivals": by.String()}
			base := reproduce.Scaled(r.base.rates(), budgetScale(alone, budget))
			o.AddRow(row("1", alone.String()+" scaled", throughputRow, "queries/s", setting), base...)
			lines[n] = plot.Line{Name: by.String(), Y: []float64{reproduce.Mean(base)}}
			groups = append(groups[:0], alone.String()+" scaled")
			for i, p := range mixedPools {
				addThroughput(o, "1", p.String(), setting, r.mixed[i].bySeed())
				gain := row("1", p.String(), "over homogeneous", "x", setting)
				if i == 0 {
					gain = gain.WithPublished(1.15, "§4")
				}
				o.AddRow(gain, reproduce.Ratios(r.mixed[i].rates(), base)...)
				lines[n].Y = append(lines[n].Y, reproduce.Mean(r.mixed[i].rates()))
				groups = append(groups, p.String())
			}
		}
		addChart(o, "1", "1: RM2 under Ribbon's rule", 1, reproduce.Bars("throughput (queries/s)", groups, lines...))
		return nil
	})
	return nil
}
