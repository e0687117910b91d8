package planning

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Renting asks which machines to rent for one app. It ignores the configuration's workers and uses its device types.
type Renting struct {
	App serving.AppID // of one stage
	// System is the system that is simulated; see [RentingSystem].
	System systems.System
	// Budgets in $/h; each is answered by itself.
	Budgets []float64
	// Demand in queries/s is to be carried at the lowest cost. With 0, each budget is to carry as much as possible.
	Demand    float64
	Bound     string // PaperBound, FluidBound or QueueEstimate: pools are ranked by it
	Effort    Effort
	RunnersUp int    // number of other pools in the answer
	Queries   int    // of a simulated run
	Seed      uint64 // of simulated runs
}

// What pools can be ranked by.
const (
	PaperBound    = "paper" // Kairos, Eq. 15
	FluidBound    = "fluid" // a linear program
	QueueEstimate = "queue" // the linear program less what queues take from it; the first few are tried by simulation
)

// Effort says which pools are simulated.
type Effort int

// The efforts. With a demand pools are always simulated, from the cheapest up.
const (
	ShownPools Effort = iota // those that are shown
	NoPools                  // none: bounds decide
	UntilSure                // as many as are needed to prove the best
)

// Rent is the answer to Renting. Its JSON is that of 'sluice plan --budget --json'.
type Rent struct {
	File       string  `json:"file"`
	App        string  `json:"app"`
	Variant    string  `json:"variant"`
	System     string  `json:"system"` // that was simulated
	SLOMS      float64 `json:"slo_ms"`
	Percentile float64 `json:"percentile"`
	RankedBy   string  `json:"ranked_by"`
	// queries/s to carry; absent when as much as possible is asked for
	Demand  float64  `json:"demand,omitempty"`
	Budgets []Budget `json:"budgets"`
}

// Budget is the answer for one budget.
type Budget struct {
	Budget float64 `json:"budget"` // $/h
	Pools  int     `json:"pools"`  // within it
	// Tried is the number of pools that were simulated to choose one; 0 when bounds alone have decided.
	Tried int `json:"tried"`
	// Sure tells that the chosen pool was searched for until no bound left room for a better one.
	Sure      bool   `json:"sure,omitempty"`
	Chosen    *Pool  `json:"chosen,omitempty"`
	RunnersUp []Pool `json:"runners_up,omitempty"`
	// AtMost is the rate in queries/s that no rule can pass with any machines for the budget. With a demand AtLeast is
	// the money in $/h below which no machines have it in time. Both are by the fluid program, and absent where that is
	// too large.
	AtMost  *float64 `json:"at_most,omitempty"`
	AtLeast *float64 `json:"cost_at_least,omitempty"`
	// Homogeneous is the best pool of one type or, with a demand, the cheapest. Scaled is its throughput, scaled up as
	// if the whole budget could be spent on it.
	Homogeneous *Pool    `json:"homogeneous,omitempty"`
	Scaled      *float64 `json:"homogeneous_scaled,omitempty"`
}

// Pool is a pool of machines in an answer.
type Pool struct {
	Machines    map[string]int `json:"machines"`
	CostPerHour float64        `json:"cost_per_hour"`
	Upper       float64        `json:"bound_paper"` // queries/s, Kairos Eq. 15
	Fluid       float64        `json:"bound_fluid"` // queries/s, the linear program
	Estimate    float64        `json:"estimate"`    // queries/s, the linear program less what queues take from it
	// Expected is the simulated allowable throughput in queries/s; it lies between Low and High.
	Expected *float64 `json:"expected,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
	// AtMost is the rate in queries/s that no rule can pass with these machines, whatever its batches: the fluid
	// program. Absent where that is too large.
	AtMost *float64 `json:"at_most,omitempty"`
	// PerMillion is the cost of a million queries at the demand or, without one, at the expected throughput.
	PerMillion *float64 `json:"dollars_per_million_queries,omitempty"`

	Text string `json:"-"` // the machines, in the order of the device types
}

// RentingSystem returns the default of Renting.System for a configuration with system s. That is s if its queries run
// one at a time, as the bounds assume, else kairos.
func RentingSystem(s systems.System) (systems.System, error) {
	rule, err := systems.NewBatcher(s.Batcher, s.Options)
	if err != nil {
		return s, err
	}
	if rule.Traits().Unbatched {
		return s, nil
	}
	return systems.Get("kairos")
}

// RentMachines chooses the machines for every budget. An error is of kind fault.Config when machines cannot be rented
// for the app, and of kind fault.Short when no variant serves its largest queries in time on any type.
func RentMachines(ctx context.Context, p *host.Profiled, r *Renting) (*Rent, error) {
	m, err := newMarket(p, r)
	if err != nil {
		return nil, err
	}
	for i, b := range r.Budgets {
		v, err := m.buy(ctx, b, func(share float64, doing string) {
			p.Options().Progress((float64(i)+share)/float64(len(r.Budgets)), doing)
		})
		if err != nil {
			return nil, err
		}
		m.report.Budgets = append(m.report.Budgets, *v)
	}
	return m.report, nil
}

// market is the machines that can be rented for one app.
type market struct {
	*Renting
	pools  *experiment.Pools
	upper  *kairos.Upper
	fluid  *kairos.Fluid
	queue  *kairos.Queueing
	report *Rent

	solver   milp.Solver // nil where there is none
	machines *truth.Table
}

func newMarket(p *host.Profiled, r *Renting) (*market, error) {
	app := &p.Spec().Apps[r.App]
	if len(app.Stages) > 1 {
		return nil, fault.Errorf(fault.Config, "app %q has %d stages: machines are rented for apps of one", app.Name,
			len(app.Stages))
	}
	out := &market{Renting: r}
	var err error
	if out.pools, err = newPools(p, r.App); err != nil {
		return nil, err
	}
	if out.machines, err = truth.NewTable(p.Spec(), p.Measurements(), truth.Lognormal, nil); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if out.solver, err = host.Solver(); err != nil {
		out.solver = nil // without a solver there is no bound
	}
	out.pools.System, out.pools.Queries, out.pools.Seed = r.System, r.Queries, r.Seed
	out.upper = kairos.NewUpper(out.pools.Market)
	if out.fluid, err = kairos.NewFluid(out.pools.Market, app.SLO.Allowed()); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if out.queue, err = kairos.NewQueueing(out.pools.Market, app.SLO.Allowed()); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	out.report = &Rent{
		File: p.Name(), App: app.Name, Variant: p.Spec().Variants[out.pools.Variant].Name, System: r.System.Name,
		SLOMS: app.SLO.Latency.Seconds() * 1e3, Percentile: app.SLO.Percentile, RankedBy: r.Bound, Demand: r.Demand,
	}
	return out, nil
}

// newPools makes the pools for an app. They run its most accurate variant that some type of machine serves in time at
// every size.
func newPools(p *host.Profiled, a serving.AppID) (*experiment.Pools, error) {
	spec := p.Spec()
	// Bounds are on actual throughputs, so they are computed from means, whatever statistic plans use.
	means, err := profile.NewTable(spec, p.Measurements(), profile.Mean)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	machines, err := truth.NewTable(spec, p.Measurements(), truth.Lognormal, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	app := &spec.Apps[a]
	within := app.SLO.Latency - app.Slack
	var chosen *experiment.Pools
	largest := app.Mix.Largest()
	for _, v := range spec.Stages[app.Stages[0]].Variants {
		x := &spec.Variants[v]
		if x.MaxBatch < largest || x.Accuracy < app.Floor || chosen != nil &&
			x.Accuracy <= spec.Variants[chosen.Variant].Accuracy {
			continue
		}
		m, err := kairos.NewMarket(means, spec, v, &app.Mix, nil, within)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err)
		}
		base := false
		for t := range m.Types {
			for c := range m.Types[t].Latency {
				items, _ := m.Mix.Class(c)
				m.Types[t].InTime = append(m.Types[t].InTime, machines.ShareWithin(v, m.Types[t].Device, items, within))
			}
			base = base || m.IsBase(t)
		}
		if base {
			chosen = &experiment.Pools{Market: m, Variant: v}
		}
	}
	if chosen == nil {
		return nil, fault.Errorf(fault.Short, "no variant of app %q answers %d items within %v on any type of machine "+
			"that was measured: raise slo.latency, take a faster variant or type, or lower apps[].items", app.Name,
			largest, within)
	}
	chosen.Env = &experiment.Environment{Spec: spec, Beliefs: p.Latencies(), Apps: p.AppInfo(),
		Truth: func(r *rand.Rand) (truth.Model, error) { return machines.WithRand(r), nil }}
	return chosen, nil
}

// describe returns the description of a candidate.
func (m *market) describe(c *candidate) Pool {
	types := m.pools.Market.Types
	v := Pool{
		Machines: make(map[string]int), CostPerHour: m.pools.Market.Cost(c.Pool), Upper: m.upper.Of(c.Pool),
		Fluid: m.fluid.Of(c.Pool), Estimate: m.queue.Of(c.Pool),
	}
	for t, n := range c.Pool {
		if n == 0 {
			continue
		}
		v.Machines[types[t].Name] = n
		if v.Text != "" {
			v.Text += ", "
		}
		v.Text += fmt.Sprintf("%d %s", n, types[t].Name)
	}
	rate := m.Demand
	if a := c.allowed; a != nil {
		v.Expected, v.Low, v.High = &a.Rate, &a.Low, &a.High
		if rate == 0 {
			rate = a.Rate
		}
	}
	if rate > 0 {
		each := v.CostPerHour / (3600 * rate) * 1e6
		v.PerMillion = &each
	}
	return v
}
