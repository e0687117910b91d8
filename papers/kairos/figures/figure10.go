package kairos

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// search adds a task that runs a search, with every seed. It replaces tr.pool. limit is as in explore.
func (run *runner) search(tr trial, x namedSearch, limit int) reproduce.Runs[*searchRun] {
	tr.pool = pool{}
	return reproduce.Add(run.Runner, fmt.Sprintf("search %s for %v, at most %d", x.name, tr, limit),
		40*run.coarse.queries*run.coarse.runs, run.Seeds, func(ctx context.Context, seed uint64) (*searchRun, error) {
			return run.explore(ctx, tr, x.make, budget, limit, seed)
		})
}

// bestShare is the part of the highest measured throughput from which a pool counts as the best.
const bestShare = 0.99

// bestRate returns the highest rate that the search measured.
func (e *searchRun) bestRate() float64 { return e.rates[e.best()] }

func (e *searchRun) evaluations() float64 { return float64(len(e.pools)) }

// addReach adds after how many evaluations a search had the best pool (until), and after how many it ended because no
// pool was open (ended). first returns a run of it, of whose space of pools it adds shares. published is what §8.3 says
// of them, in per cent.
func addReach(at reproduce.Place, system string, first func() *searchRun, until, ended reproduce.Values,
	published float64) {
	share := func(n reproduce.Values) reproduce.Values {
		return n.Map(func(v float64) float64 { return 100 * 1 / float64(first().space) * v })
	}
	at.Row(system, "evaluations until the best", "", until)
	at.Row(system, "until the best", "% of the pools", share(until)).Published(published, "§8.3, less than")
	at.Row(system, "evaluations until nothing is open", "", ended)
	at.Row(system, "until nothing is open", "% of the pools", share(ended)).Published(published, "§8.3, less than")
}

// figure10 searches the best pool of every rule by Algorithm 1 with the paper's bound (§8.3), that of Kairos's rule
// also with the bound of our linear program. The paper does not say whether it counts all evaluations or those until
// the best pool, so there are rows for both.
func figure10(run *runner, f *reproduce.Sheet) error {
	type column struct {
		name, rule string
		search     namedSearch
		published  float64
	}
	var columns []column
	for _, rule := range otherRules {
		columns = append(columns, column{rule, rule, algorithm1[0], math.NaN()})
	}
	for _, a := range algorithm1 {
		columns = append(columns, column{a.name, kairosRule, a, 1})
	}
	chart := f.Chart("10", "Kairos, Figure 10: what Algorithm 1 evaluates", 1)
	found := chart.Bars("evaluations until the best")
	ended := chart.Bars("evaluations until nothing is open, log10")
	for _, m := range models {
		at := f.At("model", m.name, "arrivals", wholeMillis)
		for _, b := range columns {
			tr := trial{setup: paperSetup(m.name), system: b.rule, arrivals: wholeMillis}
			r := run.search(tr, b.search, 0)
			until := r.Each(func(e *searchRun) float64 { return float64(e.evaluationsUntil(bestShare * e.bestRate())) })
			count := r.Each((*searchRun).evaluations)
			addReach(at, b.name, r.First, until, count, b.published)
			at.Row(b.name, "best throughput", "queries/s", r.Each((*searchRun).bestRate))
			found.Bar(b.name, m.name, until)
			ended.Bar(b.name, m.name, func() []float64 { return []float64{math.Log10(count.Mean())} })
		}
	}
	return nil
}

// allSearches are the searches of §8.3. All of them prune pools within an evaluated one. Annealing is that of Figure 2.
var allSearches = append(slices.Clone(algorithm1), namedSearch{"bayes", bayes}, namedSearch{"random", random},
	namedSearch{"genetic", genetic}, namedSearch{"annealing", annealing})

// repeated are the runs of a search with every seed.
type repeated = reproduce.Runs[[]*searchRun]

// figure11 counts what every search evaluates for Kairos's rule (§8.3): until it has a pool as good as the best that
// any of them evaluates, and until no pool is open, when the search knows that it has it. Random searches run several
// times. Each pool is measured once.
func figure11(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("11", "Kairos, Figure 11: what searches evaluate", 1)
	found := chart.Bars("evaluations until the best")
	ended := chart.Bars("evaluations until nothing is open")
	for _, m := range models {
		var all []repeated
		for n, x := range allSearches {
			all = append(all, run.repeatedSearch(m.name, x, n < len(algorithm1)))
		}
		at := f.At("model", m.name, "rule", kairosRule, "arrivals", wholeMillis)
		at.Row("all", "measured", "pools", func() []float64 { known, _ := countNonMonotone(all); return known })
		at.Row("all", "5 % less than a part of theirs", "pools",
			func() []float64 { _, less := countNonMonotone(all); return less })
		for n, x := range allSearches {
			published := math.NaN()
			if n < len(algorithm1) {
				published = 1
			}
			count := func() []float64 { _, count, _ := reach(all[n], all); return count }
			until := func() []float64 { until, _, _ := reach(all[n], all); return until }
			last := func() *searchRun { return all[n].First()[0] }
			addReach(at, x.name, last, until, count, published)
			at.Row(x.name, "ended without it", "% of the searches", func() []float64 {
				_, _, missed := reach(all[n], all)
				return []float64{reproduce.Mean(missed)}
			})
			found.Bar(x.name, m.name, until)
			ended.Bar(x.name, m.name, count)
		}
	}
	f.Note("Figures 10 and 11: a search has the best once it has evaluated a pool within 1 % of the highest " +
		"throughput that was measured. It knows it only when nothing is open: what it has not evaluated is " +
		"within an evaluated pool, or has no bound above the best. The first is the paper's rule and not " +
		"always right here: some pools carry less than a part of theirs, as the rows count.")
	return nil
}

// repeatedSearch adds a task that runs a search on a model, with every seed: run.draws times, or once if it is not
// random.
func (run *runner) repeatedSearch(model string, x namedSearch, deterministic bool) repeated {
	tr := trial{setup: paperSetup(model), system: kairosRule, arrivals: wholeMillis}
	draws := run.draws
	if deterministic {
		draws = 1
	}
	return reproduce.Add(run.Runner, fmt.Sprintf("%d searches %s for %v", draws, x.name, tr),
		100*run.coarse.queries*run.coarse.runs, run.Seeds,
		func(ctx context.Context, seed uint64) ([]*searchRun, error) {
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

// reach returns, by run of a search, the evaluations until a pool as good as the best that any of all measured with the
// same seed, the evaluations until it ended, and whether it ended without one, in per cent.
func reach(of repeated, all []repeated) (until, count, missed []float64) {
	for seed, runs := range of.Results() {
		most := 0.0
		for _, other := range all {
			for _, e := range other.Results()[seed] {
				most = max(most, e.bestRate())
			}
		}
		for _, e := range runs {
			count = append(count, e.evaluations())
			if k := e.evaluationsUntil(bestShare * most); k > 0 {
				until, missed = append(until, float64(k)), append(missed, 0)
			} else {
				until, missed = append(until, e.evaluations()), append(missed, 100)
			}
		}
	}
	return until, count, missed
}

// countNonMonotone counts, by seed, the measured pools (known), and those of them that carry 5 % less than a pool
// within them (less). Where there are such pools, pruning all pools within an evaluated one may prune the best.
func countNonMonotone(all []repeated) (known, less []float64) {
	for seed := range all[0].Results() {
		rates := make(map[pool]float64)
		for _, t := range all {
			for _, e := range t.Results()[seed] {
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

// shownEvaluations is how many evaluations after the change of sizes Figure 12 shows.
const shownEvaluations = 20

var (
	published12        = map[string]float64{"kairos+": 8}
	publishedReached12 = map[string]float64{"clkwrk": 9}
)

// figure12 shows what every scheme evaluates after the sizes of RM2's queries have become Gaussian (§8.4). Kairos
// chooses a pool without evaluations, the others search: Ribbon by Bayesian optimisation, those whose search the paper
// does not name by Algorithm 1.
func figure12(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("12", "Kairos, Figure 12: RM2 after the sizes of queries have changed", 1)
	for _, to := range gaussians {
		if err := run.changeSizes(f, chart, to); err != nil {
			return err
		}
	}
	f.Note(fmt.Sprintf(
		"Figures 12 and 16: of the Gaussian sizes the paper gives no parameters. %v has about the mean and the "+
			"deviation of the production sizes; %v is what DeepRecSys draws by default, small enough for every "+
			"type to serve all of it, so that pools need no base machine.", gaussian, deepRecSys))
	return nil
}

func (run *runner) changeSizes(f *reproduce.Sheet, chart *reproduce.Graph, to sizes) error {
	changed := setup{model: "rm2", sizes: to, qos: 1}
	s, err := run.deployment(changed)
	if err != nil {
		return err
	}
	chosen, err := s.chosenPool(budget)
	if err != nil {
		return err
	}
	most, err := s.oracle()
	if err != nil {
		return err
	}
	oracle := most.rates[most.best]
	tr := trial{setup: changed, pool: chosen, system: kairosRule, arrivals: wholeMillis}
	rates := run.throughput(tr, run.coarse).rates()
	at := f.At("model", "rm2", "sizes", to, "arrivals", wholeMillis)
	at.Row(kairosRule, "evaluations", "", reproduce.Const(0))
	at.Row(kairosRule, "best throughput", "queries/s", rates)
	at.Row(kairosRule, "of the oracle", "x", rates.Times(1/oracle)).Published(0.85, "§8.4, at least")
	at.Row("oracle", "best throughput", "queries/s", reproduce.Const(oracle))
	p := chart.Panel("best throughput so far (queries/s), sizes "+to.String(), "evaluation", 0, reproduce.Auto)
	for i := range shownEvaluations {
		p.Faint(kairosRule).Point(kairosRule, float64(i+1), rates)
	}
	add := func(name string, search namedSearch) {
		r := run.search(tr, search, shownEvaluations)
		at.Row(name, "evaluations", "", r.Each((*searchRun).evaluations)).
			Published(reproduce.In(published12, name), "§8.4")
		at.Row(name, "best throughput", "queries/s", r.Each((*searchRun).bestRate))
		at.Row(name, "evaluations until as good as kairos", "", func() (reached []float64) {
			for seed, e := range r.Results() {
				if k := e.evaluationsUntil(rates()[seed]); k > 0 {
					reached = append(reached, float64(k))
				}
			}
			return reached
		}).Published(reproduce.In(publishedReached12, name), "§8.4")
		p.Curve(name, func() (x, y []float64) {
			e, best := r.First(), 0.0
			for i := range shownEvaluations {
				if i < len(e.rates) {
					best = max(best, e.rates[i])
				}
				x, y = append(x, float64(i+1)), append(y, best)
			}
			return x, y
		})
	}
	for _, a := range algorithm1 {
		add(a.name, a)
	}
	for n, rule := range otherRules {
		tr.system = rule
		if n == 0 {
			add(rule, namedSearch{"bayes", bayes})
		} else {
			add(rule, algorithm1[0])
		}
	}
	return nil
}
