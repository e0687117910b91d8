package kairos

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
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
	experiment.Throughput
	pool        pool
	evaluations int
}

// wantPlus has KAIROS+ run with every seed, as Algorithm 1 with a bound.
func (l *lab) wantPlus(q question, name string, search searching) *reproduce.Task {
	return l.Do(fmt.Sprintf("%s for %v, finely", name, q), 40*l.coarse.queries*l.coarse.runs, l.Seeds,
		func(ctx context.Context, seed uint64) (any, error) {
			e, err := l.explore(ctx, q, search, budget, 0, seed)
			if err != nil {
				return nil, err
			}
			q := q
			q.pool = e.pools[e.top()]
			got, err := l.measure(ctx, q, l.fine, seed)
			return &searched{got, q.pool, len(e.pools)}, err
		})
}

// lineup is one model in Figure 9: what every rule carries on its best pool.
type lineup struct {
	setup    setup
	arrivals arrivals
	rules    []string
	rivals   []*reproduce.Task // by rules
	pool     pool              // that Kairos takes
	kairos   measured
	other    pool // that our linear program takes
	ours     measured
	ahead    measured
	plus     []*reproduce.Task // by algorithm1
	best     pool              // for the oracle
	oracle   float64
}

func (l *lab) lineup(at setup, by arrivals) (*lineup, error) {
	s, err := l.service(at)
	if err != nil {
		return nil, err
	}
	out := &lineup{setup: at, arrivals: by, rules: rivals()}
	oracle, err := s.oracle()
	if err != nil {
		return nil, err
	}
	out.best, out.oracle = oracle.best, oracle.rates[oracle.best]
	q := question{setup: at, arrivals: by}
	for _, q.system = range out.rules {
		out.rivals = append(out.rivals, l.wantBest(q, budget, l.fine))
	}
	if out.pool, err = s.chosen(budget); err != nil {
		return nil, err
	}
	q.system = own
	for _, a := range algorithm1 {
		out.plus = append(out.plus, l.wantPlus(q, a.name, a.make))
	}
	q.pool = out.pool
	out.kairos = l.want(q, l.fine)
	if out.other, err = s.byProgram(budget); err != nil {
		return nil, err
	}
	q.pool = out.other
	out.ours = l.want(q, l.fine)
	q.system = ahead
	out.ahead = l.want(q, l.fine)
	return out, nil
}

// claim is a number that the text gives.
type claim struct {
	value  float64
	source string
}

// claims9 are of Kairos over other rules.
var claims9 = map[string]claim{
	"fcfs": {1.5, "§8.2, around"}, "drs": {1.44, "§8.2, up to"}, "clkwrk": {1.44, "§8.2, up to"},
}

// figure9 is §8.2. The paper gives no numbers but these: about 1.5 times Ribbon for every model, up to 44 % over DRS
// and CLKWRK, within 15 % of the oracle.
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
			lines := make([]plot.Line, len(rivals())+3+len(algorithm1)+1)
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
		note9(o, all)
		return nil
	})
	return nil
}

// entry is what one system carries in Figure 9, by seed.
type entry struct {
	system string
	pools  []pool
	got    []experiment.Throughput
}

func (e *entry) rates() []float64 {
	out := make([]float64, len(e.got))
	for i := range e.got {
		out[i] = e.got[i].Rate
	}
	return out
}

// entries are those of a lineup: the rivals', and then Kairos's.
func (x *lineup) entries() (rivals, own []entry) {
	for n, t := range x.rivals {
		e := entry{system: x.rules[n]}
		for _, d := range t.Done {
			f := d.(*found)
			e.pools, e.got = append(e.pools, f.pool), append(e.got, f.Throughput)
		}
		rivals = append(rivals, e)
	}
	own = append(own, entry{"kairos", []pool{x.pool}, x.kairos.allowed()},
		entry{ours, []pool{x.other}, x.ours.allowed()}, entry{ahead, []pool{x.other}, x.ahead.allowed()})
	for n, t := range x.plus {
		e := entry{system: algorithm1[n].name}
		for _, d := range t.Done {
			f := d.(*searched)
			e.pools, e.got = append(e.pools, f.pool), append(e.got, f.Throughput)
		}
		own = append(own, e)
	}
	return rivals, own
}

// evaluations are how many Algorithm 1 needs with one of its bounds, by seed.
func (x *lineup) evaluations(n int) (count []float64) {
	for _, d := range x.plus[n].Done {
		count = append(count, float64(d.(*searched).evaluations))
	}
	return count
}

func (x *lineup) say(o *reproduce.Outcome, lines []plot.Line) {
	setting := map[string]string{"model": x.setup.model, "arrivals": x.arrivals.String()}
	rivals, own := x.entries()
	all := slices.Concat(rivals, own)
	first := mean(rivals[0].rates())
	draw := func(n int, name string, y float64) {
		lines[n].Name = name
		lines[n].Y = append(lines[n].Y, y/first)
	}
	for n := range all {
		e := &all[n]
		level(o, "9", e.system, setting, e.got)
		machines(o, "9", e.system, setting, e.pools...)
		draw(n, e.system, mean(e.rates()))
	}
	for n, a := range algorithm1 {
		o.Add(row("9", a.name, "evaluations until nothing is open", "", setting), x.evaluations(n)...)
	}
	o.Add(row("9", "oracle", throughputRow, "queries/s", setting), x.oracle)
	machines(o, "9", "oracle", setting, x.best)
	draw(len(all), "oracle", x.oracle)
	lines[len(all)].Faint = true
	for i := range own {
		e := &own[i]
		for n := range rivals {
			r := row("9", e.system, "over "+rivals[n].system, "x", setting)
			if c, ok := claims9[rivals[n].system]; ok && i == 0 {
				r = said(r, c.value, c.source)
			}
			o.Add(r, over(e.rates(), rivals[n].rates())...)
		}
		r := row("9", e.system, "of the oracle", "x", setting)
		if i == 0 {
			r = said(r, 0.85, "§8.4, at least")
		}
		o.Add(r, times(e.rates(), 1/x.oracle)...)
	}
}
