package kairos

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// addNotes9 explains where Figure 9 differs from the paper. One reason is whole milliseconds between queries, at rates
// of that order. The other is the rule of similarity, where it does not choose the pool with the highest bound.
func addNotes9(o *reproduce.Outcome, all []*ruleComparison) {
	smooth := make(map[string]*ruleComparison) // under Poisson arrivals
	for _, x := range all {
		if x.arrivals == poisson {
			smooth[x.setup.model] = x
		}
	}
	for _, x := range all {
		rate := reproduce.Mean(x.kairos.rates())
		if vary, together := x.arrivals.burstiness(rate); vary > 1 {
			o.Notes = append(o.Notes, fmt.Sprintf(
				"At %.0f queries/s of %s, whole milliseconds between queries deviate by %.1f times their mean, where "+
					"exponential gaps do by 1: %.0f %% of them are 0, and %.1f queries come at once on average, for "+
					"%d machines. "+
					"Kairos has %.2f of the oracle, which waits for no query, and %.2f with a Poisson process. The "+
					"further a rate lies below all bounds, the fewer pools they rule out: "+
					"Algorithm 1 evaluates %.0f pools here, and %.0f with a Poisson process.",
				rate, x.setup.model, vary, 100*(1-1/together), together, x.pool.machines(), rate/x.oracleRate,
				reproduce.Mean(smooth[x.setup.model].kairos.rates())/x.oracleRate, reproduce.Mean(x.evaluations(0)),
				reproduce.Mean(smooth[x.setup.model].evaluations(0))))
		}
		if x.pool != x.fluidPool {
			others, kairos := x.results()
			best := others[0]
			for _, e := range others {
				if reproduce.Mean(e.rates()) > reproduce.Mean(best.rates()) {
					best = e
				}
			}
			o.Notes = append(o.Notes, fmt.Sprintf(
				"%s, %v: by similarity (§5.2) Kairos takes %v, though %v has the highest of both bounds; it carries "+
					"%.2f of what %s does on its best pool, %v, and the other %.2f. The inputs of the authors' own "+
					"allocator lead to the same choice.",
				x.setup.model, x.arrivals, x.pool, x.fluidPool,
				reproduce.Mean(kairos[0].rates())/reproduce.Mean(best.rates()), best.system,
				best.pools[0], reproduce.Mean(kairos[1].rates())/reproduce.Mean(best.rates())))
		}
	}
}
