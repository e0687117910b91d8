package kairos

import (
	"errors"

	planner "github.com/sluice-serving/sluice/policy/plan/kairos"
	"github.com/sluice-serving/sluice/report/plot"
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
	c.base = l.want(question{setup: at, pool: homogeneous(budget), system: "fcfs", arrivals: by}, fine)
	c.kairos = l.want(question{setup: at, pool: c.pool, system: own, arrivals: by}, fine)
	c.ours = l.want(question{setup: at, pool: c.other, system: own, arrivals: by}, fine)
	return c, nil
}

// scaled is what the homogeneous pool carries, scaled up to the budget.
func (c *contest) scaled() []float64 {
	return times(c.base.rates(), scale(homogeneous(c.budget), c.budget))
}

// gain is how many times as much Kairos carries.
func (c *contest) gain() []float64 { return over(c.kairos.rates(), c.scaled()) }

// say notes a contest; published gives the gain what was published.
func (c *contest) say(o *reproduce.Outcome, figure string, setting map[string]string, published func(reproduce.Row) reproduce.Row) {
	setting["model"], setting["arrivals"] = c.setup.model, c.arrivals.String()
	o.Add(row(figure, "homogeneous, scaled", throughputRow, "queries/s", setting), c.scaled()...)
	homogeneous(c.budget).machines(o, figure, "homogeneous, scaled", setting)
	c.kairos.level(o, figure, "kairos", setting)
	c.pool.machines(o, figure, "kairos", setting)
	gain := row(figure, "kairos", "over homogeneous", "x", setting)
	if published != nil {
		gain = published(gain)
	}
	o.Add(gain, c.gain()...)
	c.ours.level(o, figure, ours, setting)
	c.other.machines(o, figure, ours, setting)
	o.Add(row(figure, ours, "over homogeneous", "x", setting), over(c.ours.rates(), c.scaled())...)
}

// ours is Kairos's rule on the pool that our linear program takes.
const ours = "kairos, linear program"

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
			c.say(o, "8", map[string]string{}, func(r reproduce.Row) reproduce.Row {
				if c.setup.model == "rm2" {
					return said(r, 2, "§8.1, up to")
				}
				return said(r, 1.25, "§8.1, more than")
			})
		}
		gains(o, "8", "8: throughput over the best homogeneous pool", all)
		return nil
	})
	return nil
}

// gains draws contests by model, a bar for each way in which queries come.
func gains(o *reproduce.Outcome, figure, title string, all []*contest) {
	var groups []string
	for _, m := range models {
		groups = append(groups, m.name)
	}
	var lines []plot.Line
	for _, c := range all {
		if len(lines) == 0 || lines[len(lines)-1].Name != c.arrivals.String() {
			lines = append(lines, plot.Line{Name: c.arrivals.String()})
		}
		line := &lines[len(lines)-1]
		line.Y = append(line.Y, mean(c.gain()))
	}
	chart(o, figure, title, 1, bars("times the homogeneous throughput", groups, lines...))
}
