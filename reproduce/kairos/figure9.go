package kairos

import (
	"context"
	"fmt"

	planner "github.com/sluice-serving/sluice/policy/plan/kairos"
	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
)

// own is the rule of the paper, the one whose pools are chosen and searched by bounds.
const own = "kairos"

// rivals are the rules that are given the best pool for each, found by trying (§8.2).
func rivals() []string {
	var out []string
	for _, r := range rules() {
		if r != own {
			out = append(out, r)
		}
	}
	return out
}

// searched is KAIROS+: the best pool that Algorithm 1 evaluates, measured finely.
type searched struct {
	experiment.Allowed
	pool        pool
	evaluations int
}

// wantPlus has KAIROS+ run with every seed.
func (l *lab) wantPlus(q question) *reproduce.Task {
	return l.Do(fmt.Sprintf("Algorithm 1 for %v", q), 40*coarse.queries*coarse.runs, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		e, err := l.explore(ctx, q, bounded, budget, 0, seed)
		if err != nil {
			return nil, err
		}
		q := q
		q.pool = e.pools[e.top()]
		got, err := l.measure(ctx, q, fine, seed)
		return &searched{got, q.pool, len(e.pools)}, err
	})
}

// mostOracle is the oracle's throughput on the best pool for it.
func (s *service) mostOracle(budget float64) (pool, float64, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return pool{}, 0, err
	}
	o := s.oracle()
	var best pool
	most := 0.0
	for _, r := range ranked {
		if v := o.Of(r.Pool); v > most {
			best, most = pool(r.Pool), v
		}
	}
	return best, most, nil
}

// lineup is one model in Figure 9: what every rule carries on its best pool.
type lineup struct {
	setup    setup
	arrivals arrivals
	rivals   []*reproduce.Task
	pool     pool // that Kairos takes
	kairos   measured
	other    pool // that our linear program takes
	ours     measured
	plus     *reproduce.Task
	best     pool // for the oracle
	oracle   float64
}

func (l *lab) lineup(at setup, by arrivals) (*lineup, error) {
	s, err := l.service(at)
	if err != nil {
		return nil, err
	}
	out := &lineup{setup: at, arrivals: by}
	if out.best, out.oracle, err = s.mostOracle(budget); err != nil {
		return nil, err
	}
	q := question{setup: at, arrivals: by}
	for _, q.system = range rivals() {
		out.rivals = append(out.rivals, l.wantBest(q, budget, fine))
	}
	if out.pool, err = s.chosen(budget); err != nil {
		return nil, err
	}
	q.system = own
	out.plus = l.wantPlus(q)
	q.pool = out.pool
	out.kairos = l.want(q, fine)
	if out.other, err = s.byProgram(budget); err != nil {
		return nil, err
	}
	q.pool = out.other
	out.ours = l.want(q, fine)
	return out, nil
}

// rival is what a rule carries on its best pool.
func (x *lineup) rival(n int) []float64 {
	out := make([]float64, len(x.rivals[n].Done))
	for i, d := range x.rivals[n].Done {
		out[i] = d.(*found).Rate
	}
	return out
}

// claim is a number that the text gives.
type claim struct {
	value  float64
	source string
}

// claims9 are of Kairos over other rules.
var claims9 = map[string]claim{"fcfs": {1.5, "§8.2, around"}, "drs": {1.44, "§8.2, up to"}, "clkwrk": {1.44, "§8.2, up to"}}

// figure9 is §8.2. The paper gives no numbers but these: about 1.5 times Ribbon for every model, up to 44 % over DRS and CLKWRK,
// within 15 % of the oracle.
func figure9(l *lab) error {
	var all []*lineup
	for _, by := range both {
		for _, m := range models {
			x, err := l.lineup(at(m.name), by)
			if err != nil {
				return err
			}
			all = append(all, x)
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, by := range both {
			lines := make([]plot.Line, len(rivals())+4)
			var groups []string
			for _, x := range all {
				if x.arrivals == by {
					groups = append(groups, x.setup.model)
					x.say(o, lines)
				}
			}
			panels = append(panels, bars("throughput over Ribbon's rule, "+by.String(), groups, lines...))
		}
		chart(o, "9", "9: every rule on its best pool", 1, panels...)
		return nil
	})
	return nil
}

func (x *lineup) say(o *reproduce.Outcome, lines []plot.Line) {
	setting := map[string]string{"model": x.setup.model, "arrivals": x.arrivals.String()}
	rates, plus := x.kairos.rates(), make([]float64, len(x.plus.Done))
	for i, d := range x.plus.Done {
		plus[i] = d.(*searched).Rate
	}
	first := mean(x.rival(0))
	draw := func(n int, name string, y float64) {
		lines[n].Name = name
		lines[n].Y = append(lines[n].Y, y/first)
	}
	for n, rule := range rivals() {
		o.Add(row("9", rule, throughputRow, "queries/s", setting), x.rival(n)...)
		x.rivals[n].Done[0].(*found).pool.machines(o, "9", rule, setting)
		draw(n, rule, mean(x.rival(n)))
	}
	n := len(rivals())
	o.Add(row("9", "kairos", throughputRow, "queries/s", setting), rates...)
	x.pool.machines(o, "9", "kairos", setting)
	o.Add(row("9", ours, throughputRow, "queries/s", setting), x.ours.rates()...)
	x.other.machines(o, "9", ours, setting)
	o.Add(row("9", "kairos+", throughputRow, "queries/s", setting), plus...)
	x.plus.Done[0].(*searched).pool.machines(o, "9", "kairos+", setting)
	o.Add(row("9", "oracle", throughputRow, "queries/s", setting), x.oracle)
	x.best.machines(o, "9", "oracle", setting)
	for i, rule := range rivals() {
		r := row("9", "kairos", "over "+rule, "x", setting)
		if c, ok := claims9[rule]; ok {
			r = said(r, c.value, c.source)
		}
		o.Add(r, over(rates, x.rival(i))...)
		o.Add(row("9", ours, "over "+rule, "x", setting), over(x.ours.rates(), x.rival(i))...)
		o.Add(row("9", "kairos+", "over "+rule, "x", setting), over(plus, x.rival(i))...)
	}
	o.Add(said(row("9", "kairos", "of the oracle", "x", setting), 0.85, "§8.4, at least"), times(rates, 1/x.oracle)...)
	o.Add(row("9", ours, "of the oracle", "x", setting), times(x.ours.rates(), 1/x.oracle)...)
	o.Add(row("9", "kairos+", "of the oracle", "x", setting), times(plus, 1/x.oracle)...)
	draw(n, "kairos", mean(rates))
	draw(n+1, ours, mean(x.ours.rates()))
	draw(n+2, "kairos+", mean(plus))
	draw(n+3, "oracle", x.oracle)
	lines[n+3].Faint = true
}
