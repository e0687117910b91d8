package kairos

import (
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	planner "github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/reproduce"
)

// chosen is the pool that Kairos takes under a budget, by its own bound and rule (§5.2).
func (s *service) chosen(budget float64) (pool, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return pool{}, err
	}
	at := planner.Choose(s.market, ranked)
	if at < 0 {
		return pool{}, errors.New("kairos: no pool serves the model")
	}
	return pool(ranked[at].Pool), nil
}

// byProgram is the pool with the highest bound by our linear program.
func (s *service) byProgram(budget float64) (pool, error) {
	f, err := s.fluid()
	if err != nil {
		return pool{}, err
	}
	ranked, err := s.ranked(f, budget)
	if err != nil || len(ranked) == 0 {
		return pool{}, err
	}
	return pool(ranked[0].Pool), nil
}

// contest is Kairos on the pool that it takes against the best homogeneous one, under one budget.
type contest struct {
	setup    setup
	arrivals arrivals
	budget   float64
	pool     pool
	base     measured
	kairos   measured
	other    pool // that our linear program takes
	ours     measured
	ahead    measured
}

// against has a contest run.
func (l *lab) against(at setup, by arrivals, budget float64) (*contest, error) {
	s, err := l.service(at)
	if err != nil {
		return nil, err
	}
	c := &contest{setup: at, arrivals: by, budget: budget}
	if c.pool, err = s.chosen(budget); err != nil {
		return nil, err
	}
	if c.other, err = s.byProgram(budget); err != nil {
		return nil, err
	}
	g := l.fine
	if slices.Max(c.pool[:]) > 30 {
		g = l.large
	}
	c.base = l.want(question{setup: at, pool: homogeneous(budget), system: "fcfs", arrivals: by}, g)
	c.kairos = l.want(question{setup: at, pool: c.pool, system: own, arrivals: by}, g)
	c.ours = l.want(question{setup: at, pool: c.other, system: own, arrivals: by}, g)
	c.ahead = l.want(question{setup: at, pool: c.other, system: ahead, arrivals: by}, g)
	return c, nil
}

// scaled is what the homogeneous pool carries, scaled up to the budget.
func (c *contest) scaled() []float64 {
	return times(c.base.rates(), scale(homogeneous(c.budget), c.budget))
}

// gain is how many times as much Kairos carries.
func (c *contest) gain() []float64 { return over(c.kairos.rates(), c.scaled()) }

// say notes a contest; published gives the gain what was published.
func (c *contest) say(o *reproduce.Outcome, figure string, setting map[string]string,
	published func(reproduce.Row) reproduce.Row) {
	setting["model"], setting["arrivals"] = c.setup.model, c.arrivals.String()
	o.Add(row(figure, "homogeneous, scaled", throughputRow, "queries/s", setting), c.scaled()...)
	machines(o, figure, "homogeneous, scaled", setting, homogeneous(c.budget))
	level(o, figure, "kairos", setting, c.kairos.allowed())
	machines(o, figure, "kairos", setting, c.pool)
	gain := row(figure, "kairos", "over homogeneous", "x", setting)
	if published != nil {
		gain = published(gain)
	}
	o.Add(gain, c.gain()...)
	level(o, figure, ours, setting, c.ours.allowed())
	machines(o, figure, ours, setting, c.other)
	o.Add(row(figure, ours, "over homogeneous", "x", setting), over(c.ours.rates(), c.scaled())...)
	level(o, figure, ahead, setting, c.ahead.allowed())
	machines(o, figure, ahead, setting, c.other)
	o.Add(row(figure, ahead, "over homogeneous", "x", setting), over(c.ahead.rates(), c.scaled())...)
}

const (
	// ours is Kairos's rule on the pool that our linear program takes.
	ours = "kairos, linear program"
	// ahead is our rule, which plans ahead, on that pool.
	ahead = "kairos-schedule"
)

// figure8 is §8.1.
func figure8(l *lab) error {
	var all []*contest
	for _, by := range both {
		for _, m := range models {
			c, err := l.against(at(m.name), by, budget)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
	}
	l.After(func(o *reproduce.Outcome) error {
		for _, c := range all {
			setting := map[string]string{}
			c.say(o, "8", setting, func(r reproduce.Row) reproduce.Row {
				if c.setup.model == "rm2" {
					return said(r, 2, "§8.1, up to")
				}
				return said(r, 1.25, "§8.1, more than")
			})
			var vary, together []float64
			for _, rate := range c.kairos.rates() {
				v, n := c.arrivals.bursts(rate)
				vary, together = append(vary, v), append(together, n)
			}
			o.Add(row("8", "kairos", "deviation of gaps over their mean", "", setting), vary...)
			o.Add(row("8", "kairos", "queries at once", "", setting), together...)
		}
		var panels []plot.Panel
		for n, by := range both {
			p := gains(all[n*len(models):][:len(models)])
			p.Name += ", " + by.String()
			panels = append(panels, p)
		}
		chart(o, "8", "8: throughput over the best homogeneous pool", 1, panels...)
		return nil
	})
	return nil
}

// gains draws contests by model.
func gains(all []*contest) plot.Panel {
	var groups []string
	taken, program, planned := plot.Line{Name: "kairos"}, plot.Line{Name: ours}, plot.Line{Name: ahead}
	for _, c := range all {
		groups = append(groups, c.setup.model)
		taken.Y = append(taken.Y, mean(c.gain()))
		program.Y = append(program.Y, mean(over(c.ours.rates(), c.scaled())))
		planned.Y = append(planned.Y, mean(over(c.ahead.rates(), c.scaled())))
	}
	return bars("times the homogeneous throughput", groups, taken, program, planned)
}
