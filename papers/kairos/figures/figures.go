package kairos

import (
	"math"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// mixedPools are the pools of Figures 1 and 3, of types G1, C1 and C2. The last costs 2.552 $/h, a little more than the
// budget, in the paper too.
var mixedPools = []pool{{3, 1, 3}, {2, 0, 9}, {1, 4, 2}}

// budgetScale is the factor on the throughput of a homogeneous pool that credits it with the rest of the budget, which
// does not pay a further machine (§4, §8.1).
func budgetScale(p pool, budget float64) float64 { return budget / p.cost() }

// figure1 compares mixed pools with the homogeneous one, for RM2 under Ribbon's rule (§4).
func figure1(run *runner, f *reproduce.Sheet) error {
	alone := homogeneous(budget)
	bars := f.Chart("1", "Kairos, Figure 1: RM2 under Ribbon's rule", 1).Bars("throughput (queries/s)")
	for _, by := range bothArrivals {
		at := f.At("model", "rm2", "rule", "fcfs", "arrivals", by)
		tr := trial{setup: paperSetup("rm2"), pool: alone, system: "fcfs", arrivals: by}
		base := run.throughput(tr, run.fine).rates().Times(budgetScale(alone, budget))
		at.Row(alone.String()+" scaled", throughputRow, "queries/s", base)
		bars.Bar(by.String(), alone.String()+" scaled", base)
		for i, p := range mixedPools {
			tr.pool = p
			mixed := run.throughput(tr, run.fine)
			addThroughput(at, p.String(), mixed)
			gain := at.Row(p.String(), "over homogeneous", "x", mixed.rates().Over(base))
			if i == 0 {
				gain.Published(1.15, "§4")
			}
			bars.Bar(by.String(), p.String(), mixed.rates())
		}
	}
	return nil
}

const (
	// Figure 2 shows so many evaluations of pools with at least this throughput, in queries/s (§4).
	annealingEvaluations, minThroughput = 60, 20.0
)

// figure2 runs simulated annealing among pools for RM2 under Ribbon's rule (§4), with all four types. The paper does
// not give its cooling; the default of algo/poolsearch is used.
func figure2(run *runner, f *reproduce.Sheet) error {
	tr := trial{setup: paperSetup("rm2"), system: "fcfs", arrivals: wholeMillis}
	search := run.search(tr, namedSearch{"annealing", annealing}, annealingEvaluations)
	tr.pool = homogeneous(budget)
	level := run.throughput(tr, run.fine).rates().Times(budgetScale(tr.pool, budget))
	at := f.At("model", "rm2", "rule", "fcfs", "arrivals", wholeMillis)
	at.Row("annealing", "evaluated pools worse than the homogeneous", "%", func() (worse []float64) {
		for seed, e := range search.Results() {
			n, under := 0, 0
			for _, r := range e.rates {
				if r >= minThroughput {
					n++
					if r < level()[seed] {
						under++
					}
				}
			}
			worse = append(worse, 100*float64(under)/math.Max(float64(n), 1))
		}
		return worse
	}).Published(70, "§4, about")
	at.Row("annealing", "best throughput", "queries/s", search.Each((*searchRun).bestRate))
	at.Row("homogeneous, scaled", "best throughput", "queries/s", level)
	p := f.Chart("2", "Kairos, Figure 2: pools that annealing evaluates, RM2 under Ribbon's rule", 1).
		Panel("throughput over homogeneous (%)", "evaluation", reproduce.Auto, reproduce.Auto)
	p.Curve("annealing", func() (x, y []float64) {
		for i, r := range search.First().rates {
			x, y = append(x, float64(i+1)), append(y, 100*(r/level()[0]-1))
		}
		return x, y
	})
	p.Faint("homogeneous").Curve("homogeneous", func() (x, y []float64) {
		for i := range search.First().rates {
			x, y = append(x, float64(i+1)), append(y, 0)
		}
		return x, y
	})
	return nil
}

// figure3 measures the pools of Figure 1 under every rule and under the oracle (§4). The paper shows the first three
// rules and the oracle, without numbers in the text.
func figure3(run *runner, f *reproduce.Sheet) error {
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		return err
	}
	oracle := s.newOracle()
	c := f.Chart("3", "Kairos, Figure 3: RM2 by pool and rule", 2)
	for _, by := range bothArrivals {
		bars := c.Bars("throughput (queries/s), " + by.String())
		for _, p := range mixedPools {
			at := f.At("model", "rm2", "pool", p, "arrivals", by)
			for _, rule := range comparedRules {
				m := run.throughput(trial{setup: s.setup, pool: p, system: rule, arrivals: by}, run.fine)
				addThroughput(at, rule, m)
				bars.Bar(rule, p.String(), m.rates())
			}
			most := reproduce.Const(oracle.Of(p.counts()))
			at.Row("oracle", throughputRow, "queries/s", most)
			bars.Faint("oracle").Bar("oracle", p.String(), most)
		}
	}
	return nil
}
