package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// kairosRule is the paper's rule. Its pools are chosen and searched by bounds.
const kairosRule = "kairos"

// otherRules are the rules whose best pool is found by measuring (§8.2).
func otherRules() []string {
	var out []string
	for _, r := range comparedRules() {
		if r != kairosRule {
			out = append(out, r)
		}
	}
	return out
}

// searchedPool is the result of KAIROS+: the best pool that Algorithm 1 evaluates, measured with high precision.
type searchedPool struct {
	experiment.Throughput
	pool        pool
	evaluations int
}

// plusTask adds a task that runs KAIROS+ with the given search, with every seed.
func (run *runner) plusTask(tr trial, name string, search searchMaker) *reproduce.Task {
	return run.AddTask(fmt.Sprintf("%s for %v, finely", name, tr), 40*run.coarse.queries*run.coarse.runs, run.Seeds,
		func(ctx context.Context, seed uint64) (any, error) {
			e, err := run.explore(ctx, tr, search, budget, 0, seed)
			if err != nil {
				return nil, err
			}
			tr := tr
			tr.pool = e.pools[e.best()]
			got, err := run.measure(ctx, tr, run.fine, seed)
			return &searchedPool{got, tr.pool, len(e.pools)}, err
		})
}

// ruleComparison is one model in Figure 9: the throughput of every rule on its best pool.
type ruleComparison struct {
	setup      setup
	arrivals   arrivals
	rules      []string
	others     []*reproduce.Task // by index in rules
	pool       pool              // chosen by Kairos
	kairos     throughputs
	fluidPool  pool // chosen by our linear program
	fluid      throughputs
	schedule   throughputs
	plus       []*reproduce.Task // by index in algorithm1
	oraclePool pool              // best for the oracle
	oracleRate float64
}

func (run *runner) compareRules(at setup, by arrivals) (*ruleComparison, error) {
	s, err := run.deployment(at)
	if err != nil {
		return nil, err
	}
	out := &ruleComparison{setup: at, arrivals: by, rules: otherRules()}
	oracle, err := s.oracle()
	if err != nil {
		return nil, err
	}
	out.oraclePool, out.oracleRate = oracle.best, oracle.rates[oracle.best]
	tr := trial{setup: at, arrivals: by}
	for _, tr.system = range out.rules {
		out.others = append(out.others, run.bestTask(tr, budget, run.fine))
	}
	if out.pool, err = s.chosenPool(budget); err != nil {
		return nil, err
	}
	tr.system = kairosRule
	for _, a := range algorithm1 {
		out.plus = append(out.plus, run.plusTask(tr, a.name, a.make))
	}
	tr.pool = out.pool
	out.kairos = run.throughputTask(tr, run.fine)
	if out.fluidPool, err = s.fluidPool(budget); err != nil {
		return nil, err
	}
	tr.pool = out.fluidPool
	out.fluid = run.throughputTask(tr, run.fine)
	tr.system = scheduleRule
	out.schedule = run.throughputTask(tr, run.fine)
	return out, nil
}

// sourcedValue is a published number with its source.
type sourcedValue struct {
	value  float64
	source string
}

// published9 has the throughput of Kairos over that of other rules.
var published9 = map[string]sourcedValue{
	"fcfs": {1.5, "§8.2, around"}, "drs": {1.44, "§8.2, up to"}, "clkwrk": {1.44, "§8.2, up to"},
}

// figure9 compares every rule on its best pool (§8.2). The paper gives no other numbers than these: about 1.5 times
// Ribbon for every model, up to 44 % over DRS and CLKWRK, within 15 % of the oracle.
func figure9(run *runner) error {
	var all []*ruleComparison
	for _, by := range bothArrivals {
		for _, m := range models {
			x, err := run.compareRules(paperSetup(m.name), by)
			if err != nil {
				return err
			}
			all = append(all, x)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, by := range bothArrivals {
			lines := make([]plot.Line, len(otherRules())+3+len(algorithm1)+1)
			var groups []string
			for _, x := range all {
				if x.arrivals == by {
					groups = append(groups, x.setup.model)
					x.addRows(o, lines)
				}
			}
			panels = append(panels, reproduce.Bars("throughput over Ribbon's rule, "+by.String(), groups, lines...))
		}
		addChart(o, "9", "9: every rule on its best pool", 1, panels...)
		addNotes9(o, all)
		return nil
	})
	return nil
}

// systemResult is the throughput of one system in Figure 9, by seed. pools has one entry when all seeds share it.
type systemResult struct {
	system     string
	pools      []pool
	throughput []experiment.Throughput
}

func (e *systemResult) rates() []float64 {
	out := make([]float64, len(e.throughput))
	for i := range e.throughput {
		out[i] = e.throughput[i].Rate
	}
	return out
}

// results returns those of the other rules, and those with Kairos's rule or ours.
func (x *ruleComparison) results() (others, kairos []systemResult) {
	for n, t := range x.others {
		e := systemResult{system: x.rules[n]}
		for _, d := range t.Results {
			f := d.(*bestFound)
			e.pools, e.throughput = append(e.pools, f.pool), append(e.throughput, f.Throughput)
		}
		others = append(others, e)
	}
	kairos = append(kairos, systemResult{"kairos", []pool{x.pool}, x.kairos.bySeed()},
		systemResult{fluidLabel, []pool{x.fluidPool}, x.fluid.bySeed()},
		systemResult{scheduleRule, []pool{x.fluidPool}, x.schedule.bySeed()})
	for n, t := range x.plus {
		e := systemResult{system: algorithm1[n].name}
		for _, d := range t.Results {
			f := d.(*searchedPool)
			e.pools, e.throughput = append(e.pools, f.pool), append(e.throughput, f.Throughput)
		}
		kairos = append(kairos, e)
	}
	return others, kairos
}

// evaluations returns how many evaluations algorithm1[n] needs, by seed.
func (x *ruleComparison) evaluations(n int) (count []float64) {
	for _, d := range x.plus[n].Results {
		count = append(count, float64(d.(*searchedPool).evaluations))
	}
	return count
}

func (x *ruleComparison) addRows(o *reproduce.Outcome, lines []plot.Line) {
	setting := map[string]string{"model": x.setup.model, "arrivals": x.arrivals.String()}
	others, kairos := x.results()
	all := slices.Concat(others, kairos)
	first := reproduce.Mean(others[0].rates())
	draw := func(n int, name string, y float64) {
		lines[n].Name = name
		lines[n].Y = append(lines[n].Y, y/first)
	}
	for n := range all {
		e := &all[n]
		addThroughput(o, "9", e.system, setting, e.throughput)
		addMachines(o, "9", e.system, setting, e.pools...)
		draw(n, e.system, reproduce.Mean(e.rates()))
	}
	for n, a := range algorithm1 {
		o.AddRow(row("9", a.name, "evaluations until nothing is open", "", setting), x.evaluations(n)...)
	}
	o.AddRow(row("9", "oracle", throughputRow, "queries/s", setting), x.oracleRate)
	addMachines(o, "9", "oracle", setting, x.oraclePool)
	draw(len(all), "oracle", x.oracleRate)
	lines[len(all)].Faint = true
	for i := range kairos {
		e := &kairos[i]
		for n := range others {
			r := row("9", e.system, "over "+others[n].system, "x", setting)
			if c, ok := published9[others[n].system]; ok && i == 0 {
				r = r.WithPublished(c.value, c.source)
			}
			o.AddRow(r, reproduce.Ratios(e.rates(), others[n].rates())...)
		}
		r := row("9", e.system, "of the oracle", "x", setting)
		if i == 0 {
			r = r.WithPublished(0.85, "§8.4, at least")
		}
		o.AddRow(r, reproduce.Scaled(e.rates(), 1/x.oracleRate)...)
	}
}
