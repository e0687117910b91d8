package kairos

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name: "kairos",
	Title: "Kairos: Building Cost-Efficient Machine Learning Inference Systems with Heterogeneous Cloud " +
		"Resources (HPDC 2023)",
	New: func(r reproduce.Request) (*runner, error) { return newRunner(r), nil },
	Figures: []reproduce.Declaration[*runner]{
		{Name: "1", Declare: figure1,
			Doc: "RM2: three mixed pools without a rule for queries against the best homogeneous one"},
		{Name: "2", Declare: figure2,
			Doc: "RM2: what simulated annealing evaluates on its way, without a rule for queries"},
		{Name: "3", Declare: figure3, Doc: "RM2: the same pools under every rule for queries"},
		{Name: "P", Declare: figureP, Doc: "how well sizes tell latencies: Pearson coefficients and deviations"},
		{Name: "8", Declare: figure8, Doc: "Kairos against the best homogeneous pool, five models"},
		{Name: "9", Declare: figure9, Doc: "every rule on its best pool, five models"},
		{Name: "10", Declare: figure10, Doc: "how many pools Algorithm 1 evaluates under every rule"},
		{Name: "11", Declare: figure11,
			Doc: "how many pools every search evaluates until it has the best, and until nothing is open"},
		{Name: "11L", Declare: figure11Live, OnRequest: true,
			Doc: "RM2: Algorithm 1 on the data plane, in real time, beside the simulator (only when asked for)"},
		{Name: "12", Declare: figure12, Doc: "RM2: what is evaluated after the sizes of queries have changed"},
		{Name: "12R", Declare: figure12Run, Doc: "RM2: one run through that change, with pools as they are planned"},
		{Name: "E", Declare: figureE,
			Doc: "KAIROS+ while it serves: two models at loads that the pool of Kairos carries or does not"},
		{Name: "L", Declare: figureL, OnRequest: true,
			Doc: "Kairos with latencies learned from nothing, five models (only when asked for)"},
		{Name: "13", Declare: figure13, Doc: "the pools with the highest bounds, five models"},
		{Name: "14", Declare: figure14, Doc: "RM2: the pools with the highest bounds under every rule"},
		{Name: "15", Declare: figure15, Doc: "Figure 8 with four times the budget, and with QoS targets 20 % higher"},
		{Name: "16", Declare: figure16, Doc: "Figure 8 with Gaussian sizes, and with noise in latencies"},
		{Name: "B", Declare: figureB,
			Doc: "ours: the paper's upper bound beside our linear program's, five models"},
		{Name: "budgets", Declare: figureBudgets, OnRequest: true,
			Doc: "ours: what every planner chooses at five budgets, beside the best of a search (only when asked for)"},
	},
	Notes: []string{
		"Throughput is the highest rate at which at most 1 % of the queries are outside QoS, by bisection. Between " +
			"what is known to be carried and what is known not to be, each with 2.5 % of error a look, lies what the " +
			"number may be.",
		"Whole ms: between queries lie whole milliseconds, Poisson-distributed, as the authors' code draws them. " +
			"Poisson: exponential gaps, as the paper says. Pools are (g4dn.xlarge, c5n.2xlarge, r5n.large, t3.xlarge).",
	},
}

// Paper returns the experiments of Kairos.
func Paper() reproduce.Paper { return study.Paper() }

// runner collects what the figures need, and keeps what they share.
type runner struct {
	*reproduce.Runner
	fine        precision
	large       precision // for large pools, whose runs take long
	coarse      precision // where whole spaces of pools are measured
	chosen      precision // where pools are compared that nearly carry the same
	draws       uint64    // runs of a random search with every seed
	deployments reproduce.Memo[setup, *deployment]
	throughputs reproduce.Memo[trialKey, experiment.Throughput]
	rentals     reproduce.Memo[rentalKey, pool]
	varied      []model // that Figures 15 and 16 have
	// rentalResolution is how near the highest rate that a planner rents machines for is found, relative to it.
	rentalResolution float64
	exploreSpan      time.Duration
}

func newRunner(r reproduce.Request) *runner {
	return &runner{
		Runner: reproduce.NewRunner(r), draws: 3, varied: models, rentalResolution: 0.02,
		exploreSpan: exploreSpan,
		fine:        precision{queries: 5000, runs: 8, resolution: 0.02},
		large:       precision{queries: 4000, runs: 6, resolution: 0.03},
		coarse:      precision{queries: 3000, runs: 2, resolution: 0.05, rough: true},
		chosen:      precision{queries: 3000, runs: 3, resolution: 0.02, rough: true},
	}
}

// deployment returns a model in a setup, prepared once.
func (run *runner) deployment(s setup) (*deployment, error) {
	return run.deployments.Get(s, func() (*deployment, error) { return newDeployment(s) })
}

// paperSetup returns the setup in which the paper runs a model.
func paperSetup(model string) setup { return setup{model: model, qos: 1} }

// bothArrivals are the two kinds of arrivals that the figures compare.
var bothArrivals = []arrivals{wholeMillis, poisson}

// measured is a pool and what it carries.
type measured struct {
	pool
	experiment.Throughput
	evaluations int // of the search that found it
}

// carried are measured pools, by seed.
type carried struct{ reproduce.Runs[measured] }

func (c carried) rates() reproduce.Values {
	return c.Each(func(m measured) float64 { return m.Rate })
}

// pools returns the pools by seed.
func (c carried) pools() (out []pool) {
	for _, m := range c.Results() {
		out = append(out, m.pool)
	}
	return out
}

// throughput adds a task that measures a trial with every seed.
func (run *runner) throughput(tr trial, g precision) carried {
	return carried{reproduce.Add(run.Runner, tr.String()+", "+g.String(), g.queries*g.runs, run.Seeds,
		func(ctx context.Context, seed uint64) (measured, error) {
			got, err := run.measure(ctx, tr, g, seed)
			return measured{tr.pool, got, 0}, err
		})}
}

const throughputRow = "throughput"

// addThroughput adds the throughput of every seed, and its bounds where they are known.
func addThroughput(at reproduce.Place, system string, c carried) {
	known := func(of func(measured) float64) reproduce.Values {
		return func() []float64 {
			return slices.DeleteFunc(c.Each(of)(), func(v float64) bool { return v <= 0 })
		}
	}
	at.Row(system, throughputRow, "queries/s", c.rates())
	at.Row(system, "known carried", "queries/s", known(func(m measured) float64 { return m.Low }))
	at.Row(system, "known not carried", "queries/s", known(func(m measured) float64 { return m.High }))
}

// addMachines adds the machines of pools, a row for each type. There is one pool for each seed, or one for all.
func addMachines(at reproduce.Place, system string, pools func() []pool) {
	for t := range machineTypes {
		at.Row(system, machineTypes[t].Name, "", func() (out []float64) {
			for _, p := range pools() {
				out = append(out, float64(p[t]))
			}
			return out
		})
	}
}

// always returns one pool for all seeds.
func always(p pool) func() []pool { return func() []pool { return []pool{p} } }

// comparedRules are the rules for sending queries that figures compare (§7): Ribbon's, DRS, CLKWRK and Kairos's own.
var comparedRules = append(slices.Clone(otherRules), kairosRule)

// otherRules are those whose best pool is found by measuring (§8.2).
var otherRules = []string{"fcfs", "drs", "clkwrk"}

const (
	// kairosRule is the paper's rule. Its pools are chosen and searched by bounds.
	kairosRule = "kairos"
	// exploringRule is KAIROS+, which tries pools while it serves.
	exploringRule = "kairos+"
	// fluidLabel names Kairos's rule on the pool that our linear program chooses.
	fluidLabel = "kairos, linear program"
	// scheduleRule is our rule, which plans ahead; it runs on the pool that our linear program chooses.
	scheduleRule = "kairos-schedule"
)
