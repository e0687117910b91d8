package kairos

import (
	"errors"
	"slices"

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

// contender is a system with its pools.
type contender struct {
	name  string
	pools func() []pool
	carried
}

// poolComparison compares systems on the pools that they choose with the best homogeneous pool under the same budget.
type poolComparison struct {
	setup       setup
	arrivals    arrivals
	budget      float64
	homogeneous reproduce.Values // its throughput, scaled up to the whole budget
	contenders  []contender      // Kairos first
}

// comparePools adds the tasks of a comparison of pools.
func (run *runner) comparePools(at setup, by arrivals, budget float64) (*poolComparison, error) {
	s, err := run.deployment(at)
	if err != nil {
		return nil, err
	}
	chosen, err := s.chosenPool(budget)
	if err != nil {
		return nil, err
	}
	fluid, err := s.fluidPool(budget)
	if err != nil {
		return nil, err
	}
	g, alone := run.fine, homogeneous(budget)
	if slices.Max(chosen[:]) > 30 {
		g = run.large
	}
	on := func(p pool, system string) carried {
		return run.throughput(trial{setup: at, pool: p, system: system, arrivals: by}, g)
	}
	c := &poolComparison{setup: at, arrivals: by, budget: budget}
	c.homogeneous = on(alone, "fcfs").rates().Times(budgetScale(alone, budget))
	own := run.rented(at, by, budget, g)
	c.contenders = []contender{
		{kairosRule, always(chosen), on(chosen, kairosRule)}, {fluidLabel, always(fluid), on(fluid, kairosRule)},
		{scheduleRule, always(fluid), on(fluid, scheduleRule)}, {systems.Default, own.pools, own},
	}
	return c, nil
}

// gain returns the throughput of a contender over that of the scaled homogeneous pool.
func (c *poolComparison) gain(contender int) reproduce.Values {
	return c.contenders[contender].rates().Over(c.homogeneous)
}

// addRows adds the rows of a comparison, and its group of bars. It returns Kairos's gain.
func (c *poolComparison) addRows(at reproduce.Place, bars *reproduce.Panel) (gain *reproduce.Entry) {
	at.Row("homogeneous, scaled", throughputRow, "queries/s", c.homogeneous)
	addMachines(at, "homogeneous, scaled", always(homogeneous(c.budget)))
	for i, x := range c.contenders {
		addThroughput(at, x.name, x.carried)
		addMachines(at, x.name, x.pools)
		if e := at.Row(x.name, "over homogeneous", "x", c.gain(i)); i == 0 {
			gain = e
		}
		bars.Bar(x.name, c.setup.model, c.gain(i))
	}
	return gain
}

// gainBars names the bars of comparisons.
const gainBars = "times the homogeneous throughput"

// figure8 compares Kairos with the best homogeneous pool (§8.1).
func figure8(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("8", "Kairos, Figure 8: throughput over the best homogeneous pool", 1)
	for _, by := range bothArrivals {
		bars := chart.Bars(gainBars + ", " + by.String())
		for _, m := range models {
			c, err := run.comparePools(paperSetup(m.name), by, budget)
			if err != nil {
				return err
			}
			at := f.At("model", m.name, "arrivals", by)
			gain := c.addRows(at, bars)
			if m.name == "rm2" {
				gain.Published(2, "§8.1, up to")
			} else {
				gain.Published(1.25, "§8.1, more than")
			}
			rates := c.contenders[0].rates()
			at.Row(kairosRule, "deviation of gaps over their mean", "", rates.Map(func(rate float64) float64 {
				vary, _ := by.burstiness(rate)
				return vary
			}))
			at.Row(kairosRule, "queries at once", "", rates.Map(func(rate float64) float64 {
				_, together := by.burstiness(rate)
				return together
			}))
		}
	}
	return nil
}

// variation is a setup that differs in one thing from Figure 8.
type variation struct {
	name, value string // in the rows' setting
	budget      float64
	change      func(*setup)
}

// vary compares variations with Figure 8.
func (run *runner) vary(f *reproduce.Sheet, all ...variation) error {
	chart := f.Chart(f.Figure, "Kairos, Figure "+f.Figure+": throughput over the best homogeneous pool", 1)
	for _, x := range all {
		bars := chart.Bars(x.name + " " + x.value + ": " + gainBars)
		for _, m := range run.varied {
			changed := paperSetup(m.name)
			x.change(&changed)
			c, err := run.comparePools(changed, wholeMillis, x.budget)
			if err != nil {
				return err
			}
			plain, err := run.comparePools(paperSetup(m.name), wholeMillis, budget)
			if err != nil {
				return err
			}
			at := f.At(x.name, x.value, "model", m.name, "arrivals", wholeMillis)
			c.addRows(at, bars)
			at.Row(kairosRule, "over homogeneous in Figure 8", "x", plain.gain(0))
			bars.Faint("kairos in Figure 8").Bar("kairos in Figure 8", m.name, plain.gain(0))
		}
	}
	return nil
}

// figure15 varies Figure 8: four times the budget, and QoS targets 20 % higher (§8.6).
func figure15(run *runner, f *reproduce.Sheet) error {
	return run.vary(f,
		variation{name: "budget", value: "10 $/h", budget: 4 * budget, change: func(*setup) {}},
		variation{name: "QoS", value: "x 1.2", budget: budget, change: func(s *setup) { s.qos = 1.2 }})
}

// figure16 varies Figure 8: Gaussian sizes, and latencies that deviate by 5 % from their prediction (§8.6). The paper
// says 5 % variance; here it is the standard deviation.
func figure16(run *runner, f *reproduce.Sheet) error {
	var all []variation
	for _, to := range gaussians {
		all = append(all, variation{name: "sizes", value: to.String(), budget: budget,
			change: func(s *setup) { s.sizes = to }})
	}
	return run.vary(f, append(all, variation{name: "noise", value: "5 %", budget: budget,
		change: func(s *setup) { s.noise = 0.05 }})...)
}
