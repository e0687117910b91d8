package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// shownEvaluations is how many evaluations after the change of sizes Figure 12 shows.
const shownEvaluations = 20

// sizeChange is RM2 after its query sizes have changed.
type sizeChange struct {
	sizes   sizes
	kairos  throughputs
	oracle  float64
	schemes []namedSearch // those after the ones of algorithm1 have the names of rules
	tasks   []*reproduce.Task
}

// figure12 shows what every scheme evaluates after the sizes of RM2's queries have become Gaussian (§8.4). Kairos
// chooses a pool without evaluations, the others search: Ribbon by Bayesian optimisation, those whose search the paper
// does not name by Algorithm 1.
func figure12(run *runner) error {
	var all []*sizeChange
	for _, to := range gaussians {
		x, err := run.changeSizes(to)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, x := range all {
			panels = append(panels, x.addRows(o))
		}
		o.Notes = append(o.Notes, fmt.Sprintf(
			"Figures 12 and 16: of the Gaussian sizes the paper gives no parameters. %v has about the mean and the "+
				"deviation of the production sizes; %v is what DeepRecSys draws by default, small enough for every "+
				"type to serve all of it, so that pools need no base machine.",
			gaussian, deepRecSys))
		addChart(o, "12", "12: RM2 after the sizes of queries have changed", 1, panels...)
		return nil
	})
	return nil
}

func (run *runner) changeSizes(to sizes) (*sizeChange, error) {
	changed := setup{model: "rm2", sizes: to, qos: 1}
	s, err := run.deployment(changed)
	if err != nil {
		return nil, err
	}
	p, err := s.chosenPool(budget)
	if err != nil {
		return nil, err
	}
	oracle, err := s.oracle()
	if err != nil {
		return nil, err
	}
	tr := trial{setup: changed, pool: p, system: kairosRule, arrivals: wholeMillis}
	x := &sizeChange{sizes: to, kairos: run.throughputTask(tr, run.coarse), oracle: oracle.rates[oracle.best]}
	add := func(name string, search namedSearch) {
		x.schemes = append(x.schemes, namedSearch{name, search.make})
		x.tasks = append(x.tasks, run.searchTask(tr, search, shownEvaluations))
	}
	for _, a := range algorithm1 {
		add(a.name, a)
	}
	for n, rule := range otherRules() {
		tr.system = rule
		if n == 0 {
			add(rule, namedSearch{"bayes", bayes})
		} else {
			add(rule, algorithm1[0])
		}
	}
	return x, nil
}

func (x *sizeChange) addRows(o *reproduce.Outcome) plot.Panel {
	setting := map[string]string{"model": "rm2", "sizes": x.sizes.String(), "arrivals": wholeMillis.String()}
	rates := x.kairos.rates()
	o.AddRow(row("12", "kairos", "evaluations", "", setting), 0)
	o.AddRow(row("12", "kairos", "best throughput", "queries/s", setting), rates...)
	o.AddRow(row("12", "kairos", "of the oracle", "x", setting).WithPublished(0.85, "§8.4, at least"),
		reproduce.Scaled(rates, 1/x.oracle)...)
	o.AddRow(row("12", "oracle", "best throughput", "queries/s", setting), x.oracle)
	flat := plot.Line{Name: "kairos", Faint: true}
	for i := range shownEvaluations {
		flat.X, flat.Y = append(flat.X, float64(i+1)), append(flat.Y, reproduce.Mean(rates))
	}
	lines := []plot.Line{flat}
	for n, scheme := range x.schemes {
		t := x.tasks[n]
		count, reach := row("12", scheme.name, "evaluations", "", setting),
			row("12", scheme.name, "evaluations until as good as kairos", "", setting)
		if c, ok := published12[scheme.name]; ok {
			count = count.WithPublished(c.value, c.source)
		}
		if c, ok := publishedReached12[scheme.name]; ok {
			reach = reach.WithPublished(c.value, c.source)
		}
		o.AddRow(count, reproduce.Each(t, func(e *searchRun) float64 { return float64(len(e.pools)) })...)
		o.AddRow(row("12", scheme.name, "best throughput", "queries/s", setting),
			reproduce.Each(t, func(e *searchRun) float64 {
				return e.rates[e.best()]
			})...)
		var reached []float64
		for seed, d := range t.Results {
			if k := d.(*searchRun).evaluationsUntil(rates[seed]); k > 0 {
				reached = append(reached, float64(k))
			}
		}
		o.AddRow(reach, reached...)
		line, e := plot.Line{Name: scheme.name}, t.Results[0].(*searchRun)
		best := 0.0
		for i := range shownEvaluations {
			if i < len(e.rates) {
				best = max(best, e.rates[i])
			}
			line.X, line.Y = append(line.X, float64(i+1)), append(line.Y, best)
		}
		lines = append(lines, line)
	}
	return plot.Panel{
		Name: "best throughput so far (queries/s), sizes " + x.sizes.String(), XName: "evaluation", Lines: lines,
		Low: 0, High: math.NaN(),
	}
}

var (
	published12        = map[string]sourcedValue{"kairos+": {8, "§8.4"}}
	publishedReached12 = map[string]sourcedValue{"clkwrk": {9, "§8.4"}}
)
