package kairos

import (
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/systems"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// chosenPool returns the pool that Kairos chooses under a budget, by its own bound and rule (§5.2).
func (s *deployment) chosenPool(budget float64) (pool, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return pool{}, err
	}
	at := planner.ChooseBySimilarity(s.market, ranked)
	if at < 0 {
		return pool{}, errors.New("kairos: no pool serves the model")
	}
	return pool(ranked[at].Pool), nil
}

// fluidPool returns the pool with the highest bound of our linear program.
func (s *deployment) fluidPool(budget float64) (pool, error) {
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

// poolComparison compares Kairos on the pool that it chooses with the best homogeneous pool under the same budget.
type poolComparison struct {
	setup       setup
	arrivals    arrivals
	budget      float64
	pool        pool
	homogeneous throughputs
	kairos      throughputs
	fluidPool   pool // chosen by our linear program
	fluid       throughputs
	schedule    throughputs
	own         *ownPool // of the default system
}

// comparePools adds the tasks of a comparison of pools.
func (run *runner) comparePools(at setup, by arrivals, budget float64) (*poolComparison, error) {
	s, err := run.deployment(at)
	if err != nil {
		return nil, err
	}
	c := &poolComparison{setup: at, arrivals: by, budget: budget}
	if c.pool, err = s.chosenPool(budget); err != nil {
		return nil, err
	}
	if c.fluidPool, err = s.fluidPool(budget); err != nil {
		return nil, err
	}
	g := run.fine
	if slices.Max(c.pool[:]) > 30 {
		g = run.large
	}
	c.homogeneous = run.throughputTask(trial{setup: at, pool: homogeneous(budget), system: "fcfs", arrivals: by}, g)
	c.kairos = run.throughputTask(trial{setup: at, pool: c.pool, system: kairosRule, arrivals: by}, g)
	c.fluid = run.throughputTask(trial{setup: at, pool: c.fluidPool, system: kairosRule, arrivals: by}, g)
	c.schedule = run.throughputTask(trial{setup: at, pool: c.fluidPool, system: scheduleRule, arrivals: by}, g)
	c.own = run.ownPoolTask(at, by, budget, g)
	return c, nil
}

// scaled returns the throughput of the homogeneous pool, scaled up to the whole budget, by seed.
func (c *poolComparison) scaled() []float64 {
	return reproduce.Scaled(c.homogeneous.rates(), budgetScale(homogeneous(c.budget), c.budget))
}

// gain returns the throughput of Kairos over that of the scaled homogeneous pool, by seed.
func (c *poolComparison) gain() []float64 { return reproduce.Ratios(c.kairos.rates(), c.scaled()) }

// addRows adds the rows of a comparison of pools. It adds model and arrivals to setting. published, which may be nil,
// adds the published number to the row of the gain.
func (c *poolComparison) addRows(o *reproduce.Outcome, figure string, setting map[string]string,
	published func(reproduce.Row) reproduce.Row) {
	setting["model"], setting["arrivals"] = c.setup.model, c.arrivals.String()
	o.AddRow(row(figure, "homogeneous, scaled", throughputRow, "queries/s", setting), c.scaled()...)
	addMachines(o, figure, "homogeneous, scaled", setting, homogeneous(c.budget))
	addThroughput(o, figure, "kairos", setting, c.kairos.bySeed())
	addMachines(o, figure, "kairos", setting, c.pool)
	gain := row(figure, "kairos", "over homogeneous", "x", setting)
	if published != nil {
		gain = published(gain)
	}
	o.AddRow(gain, c.gain()...)
	addThroughput(o, figure, fluidLabel, setting, c.fluid.bySeed())
	addMachines(o, figure, fluidLabel, setting, c.fluidPool)
	o.AddRow(row(figure, fluidLabel, "over homogeneous", "x", setting),
		reproduce.Ratios(c.fluid.rates(), c.scaled())...)
	addThroughput(o, figure, scheduleRule, setting, c.schedule.bySeed())
	addMachines(o, figure, scheduleRule, setting, c.fluidPool)
	o.AddRow(row(figure, scheduleRule, "over homogeneous", "x", setting),
		reproduce.Ratios(c.schedule.rates(), c.scaled())...)
	addThroughput(o, figure, systems.Default, setting, c.own.bySeed())
	addMachines(o, figure, systems.Default, setting, c.own.pools()...)
	o.AddRow(row(figure, systems.Default, "over homogeneous", "x", setting),
		reproduce.Ratios(c.own.rates(), c.scaled())...)
}

const (
	// fluidLabel names Kairos's rule on the pool that our linear program chooses.
	fluidLabel = "kairos, linear program"
	// scheduleRule is our rule, which plans ahead; it runs on the pool that our linear program chooses.
	scheduleRule = "kairos-schedule"
)

// figure8 compares Kairos with the best homogeneous pool (§8.1).
func figure8(run *runner) error {
	var all []*poolComparison
	for _, by := range bothArrivals {
		for _, m := range models {
			c, err := run.comparePools(paperSetup(m.name), by, budget)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		for _, c := range all {
			setting := map[string]string{}
			c.addRows(o, "8", setting, func(r reproduce.Row) reproduce.Row {
				if c.setup.model == "rm2" {
					return r.WithPublished(2, "§8.1, up to")
				}
				return r.WithPublished(1.25, "§8.1, more than")
			})
			var vary, together []float64
			for _, rate := range c.kairos.rates() {
				v, n := c.arrivals.burstiness(rate)
				vary, together = append(vary, v), append(together, n)
			}
			o.AddRow(row("8", "kairos", "deviation of gaps over their mean", "", setting), vary...)
			o.AddRow(row("8", "kairos", "queries at once", "", setting), together...)
		}
		var panels []plot.Panel
		for n, by := range bothArrivals {
			p := gainPanel(all[n*len(models):][:len(models)])
			p.Name += ", " + by.String()
			panels = append(panels, p)
		}
		addChart(o, "8", "8: throughput over the best homogeneous pool", 1, panels...)
		return nil
	})
	return nil
}

// gainPanel draws comparisons, a group of bars for each.
func gainPanel(all []*poolComparison) plot.Panel {
	var groups []string
	taken, program, planned := plot.Line{Name: "kairos"}, plot.Line{Name: fluidLabel}, plot.Line{Name: scheduleRule}
	own := plot.Line{Name: systems.Default}
	for _, c := range all {
		groups = append(groups, c.setup.model)
		taken.Y = append(taken.Y, reproduce.Mean(c.gain()))
		program.Y = append(program.Y, reproduce.Mean(reproduce.Ratios(c.fluid.rates(), c.scaled())))
		planned.Y = append(planned.Y, reproduce.Mean(reproduce.Ratios(c.schedule.rates(), c.scaled())))
		own.Y = append(own.Y, reproduce.Mean(reproduce.Ratios(c.own.rates(), c.scaled())))
	}
	return reproduce.Bars("times the homogeneous throughput", groups, taken, program, planned, own)
}
