package cli

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
)

// renting is what the command line asks to be rented under a budget.
type renting struct {
	budget  string // $/h, or from..to
	app     string
	bound   string // which one pools are ranked by
	others  int    // runners-up shown
	search  bool   // try pools until the best is found
	bounds  bool   // try none
	queries int    // of a simulated run
	seed    uint64
}

// The bounds that pools can be ranked by.
const (
	paperBound = "paper"
	fluidBound = "fluid"
)

// rentReport is what 'sluice plan --budget' answers, and its JSON.
type rentReport struct {
	File       string  `json:"file"`
	App        string  `json:"app"`
	Variant    string  `json:"variant"`
	System     string  `json:"system"` // whose rules the expected throughputs are of
	SLOMS      float64 `json:"slo_ms"`
	Percentile float64 `json:"percentile"`
	RankedBy   string  `json:"ranked_by"`
	// queries/s to carry; absent when as much as possible is asked for
	Demand  float64      `json:"demand,omitempty"`
	Budgets []budgetView `json:"budgets"`
}

// budgetView is what a budget buys.
type budgetView struct {
	Budget float64 `json:"budget"` // $/h
	Pools  int     `json:"pools"`  // within it
	// Tried is how many pools were simulated to find the one chosen; 0 when it was chosen by bounds alone.
	Tried     int        `json:"tried"`
	Chosen    *poolView  `json:"chosen,omitempty"`
	RunnersUp []poolView `json:"runners_up,omitempty"`
	// Homogeneous is the best pool of one type, with a demand the cheapest; Scaled is what the best would carry if the
	// whole budget could be spent on it.
	Homogeneous *poolView `json:"homogeneous,omitempty"`
	Scaled      *float64  `json:"homogeneous_scaled,omitempty"`
}

// poolView is a pool of machines as people and programs read it.
type poolView struct {
	Machines    map[string]int `json:"machines"`
	CostPerHour float64        `json:"cost_per_hour"`
	Upper       float64        `json:"bound_paper"` // queries/s, Kairos Eq. 15
	Fluid       float64        `json:"bound_fluid"` // queries/s, the linear program
	// Expected is the simulated allowable throughput in queries/s; it is known to lie between Low and High.
	Expected *float64 `json:"expected,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
	// PerMillion is what a million queries cost at the demand, or else at the expected throughput.
	PerMillion *float64 `json:"dollars_per_million_queries,omitempty"`

	text string
}

// rental is one app to rent machines for.
type rental struct {
	*renting
	pools  *experiment.Pools
	upper  *kairos.Upper
	fluid  *kairos.Fluid
	demand float64
	report *rentReport
}

// runBudget answers --budget.
func (p *planning) runBudget(e *Env, r *renting, demanded bool) error {
	low, high, err := parseSpan(r.budget, 1e9)
	if err != nil || !(high > 0) || low > high {
		return exit(ExitUsage, "--budget %s: want $/h above 0, or FROM..TO", r.budget)
	}
	if len(p.fleets) > 1 || len(p.systems) > 1 || len(p.steps) > 1 || p.after > 0 {
		return exit(ExitUsage,
			"--budget chooses the machines: leave out --what-if, --compare, --after and ranges of demand")
	}
	if r.bound != paperBound && r.bound != fluidBound {
		return exit(ExitUsage, "--bound is %q, want %s or %s", r.bound, paperBound, fluidBound)
	}
	if r.others < 0 || r.others > mostPoints || r.queries < 100 || r.queries > 1e7 {
		return exit(ExitUsage, "--runners-up is %d and --queries %d, want 0 to %d and 100 to 10,000,000", r.others,
			r.queries, mostPoints)
	}
	ranged := low != high || p.frontier
	if r.bounds && (r.search || demanded) {
		return exit(ExitUsage, "--bounds-only tries no pool: leave out --search and --demand")
	}
	if ranged && demanded {
		return exit(ExitUsage, "what a demand costs is one budget: leave out --demand, or the range and --frontier")
	}
	x, err := p.rent(r)
	if err != nil {
		return err
	}
	if demanded {
		if x.demand = p.steps[0].rates[x.app()]; x.demand <= 0 {
			return exit(ExitUsage, "--demand says nothing of app %q", x.report.App)
		}
		x.report.Demand = x.demand
	}
	budgets := []float64{high}
	if ranged {
		budgets = spread(low, high, p.points)
	}
	bar := newProgress(e)
	for i, b := range budgets {
		v, err := x.buy(e.Context, b, func(share float64, what string) {
			bar.show((float64(i)+share)/float64(len(budgets)), what)
		})
		if err != nil {
			bar.done()
			return err
		}
		x.report.Budgets = append(x.report.Budgets, *v)
	}
	bar.done()
	if err := p.writeRent(e, x.report, ranged); err != nil {
		return err
	}
	if v := &x.report.Budgets[0]; !ranged && v.Chosen == nil {
		if demanded {
			return exit(ExitShortOf, "no pool of at most %s $/h carries %s of app %q", money(high), rateText(x.demand),
				x.report.App)
		}
		return exit(ExitShortOf, "no pool of at most %s $/h serves queries of every size of app %q in time",
			money(high), x.report.App)
	}
	return nil
}

// spread is that many budgets up to high, from low or, when they are the same, from the first part of it.
func spread(low, high float64, points int) []float64 {
	if points == 0 {
		points = defaultBudgets
	}
	var out []float64
	for k := range points {
		if low == high {
			out = append(out, high*float64(k+1)/float64(points))
		} else {
			out = append(out, low+(high-low)*float64(k)/float64(max(points-1, 1)))
		}
	}
	return out
}

const defaultBudgets = 10

// rent prepares the market of the app that machines are to be rented for.
func (p *planning) rent(r *renting) (*rental, error) {
	w := p.world
	a := serving.AppID(0)
	if r.app != "" {
		var ok bool
		if a, ok = w.App(r.app); !ok {
			return nil, exit(ExitUsage, "--app: app %q does not exist: use one of %s", r.app,
				strings.Join(w.appNames(), ", "))
		}
	} else if len(w.Spec.Apps) > 1 {
		return nil, exit(ExitUsage, "a budget is for one app: name one of %s with --app",
			strings.Join(w.appNames(), ", "))
	}
	app := &w.Spec.Apps[a]
	if len(app.Stages) > 1 {
		return nil, exit(ExitConfig, "app %q has %d stages: machines are rented for apps of one", app.Name,
			len(app.Stages))
	}
	// Bounds are of what happens, so they are made of means, whatever the server believes in.
	means, err := profile.NewTable(w.Spec, w.measurements, profile.Mean)
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	machines, err := truth.NewTable(w.Spec, w.measurements, truth.Lognormal, nil)
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	x := &rental{renting: r}
	if x.pools, err = w.pools(means, machines, a); err != nil {
		return nil, err
	}
	x.pools.System, x.pools.Queries, x.pools.Seed = p.systems[0], r.queries, r.seed
	m := x.pools.Market
	x.upper = kairos.NewUpper(m)
	if x.fluid, err = kairos.NewFluid(m, 1-app.SLO.Percentile/100); err != nil {
		return nil, &status{ExitConfig, err}
	}
	x.report = &rentReport{
		File: w.file.Name(), App: app.Name, Variant: w.Spec.Variants[x.pools.Variant].Name, System: p.systems[0].Name,
		SLOMS: app.SLO.Latency.Seconds() * 1e3, Percentile: app.SLO.Percentile, RankedBy: r.bound,
	}
	return x, nil
}

// pools makes the market of an app's most accurate variant that some type of machine serves in time at every size.
func (w *world) pools(means *profile.Table, machines *truth.Table, a serving.AppID) (*experiment.Pools, error) {
	app := &w.Spec.Apps[a]
	within := app.SLO.Latency - app.Slack
	var chosen *experiment.Pools
	largest := app.Mix.Largest()
	for _, v := range w.Spec.Stages[app.Stages[0]].Variants {
		x := &w.Spec.Variants[v]
		if x.MaxBatch < largest || x.Accuracy < app.Floor || chosen != nil &&
			x.Accuracy <= w.Spec.Variants[chosen.Variant].Accuracy {
			continue
		}
		m, err := kairos.NewMarket(means, w.Spec, v, &app.Mix, nil, within)
		if err != nil {
			return nil, &status{ExitConfig, err}
		}
		base := false
		for t := range m.Types {
			for c := range m.Types[t].Latency {
				items, _ := m.Mix.Class(c)
				m.Types[t].InTime = append(m.Types[t].InTime, machines.Within(v, m.Types[t].Device, items, within))
			}
			base = base || m.Base(t)
		}
		if base {
			chosen = &experiment.Pools{Market: m, Variant: v}
		}
	}
	if chosen == nil {
		return nil, exit(ExitShortOf, "no variant of app %q answers %d items within %v on any type of machine that "+
			"was measured: raise slo.latency, take a faster variant or type, or lower apps[].items", app.Name, largest,
			within)
	}
	chosen.World = &experiment.World{Spec: w.Spec, Beliefs: w.profile, Apps: w.appInfos(),
		Truth: func(r *rand.Rand) (truth.Model, error) {
			return machines.With(r), nil
		}}
	return chosen, nil
}

func (x *rental) app() serving.AppID {
	spec := x.pools.World.Spec
	return spec.Stages[spec.Variants[x.pools.Variant].Stage].App
}

// candidate is a pool and what it was found to carry; nil until it has been simulated.
type candidate struct {
	kairos.Ranked
	allowed *experiment.Allowed
}

// untried makes candidates of ranked pools.
func untried(ranked ...kairos.Ranked) []candidate {
	out := make([]candidate, len(ranked))
	for i, r := range ranked {
		out[i].Ranked = r
	}
	return out
}

// buy chooses the pool of a budget and tells of it and of others.
func (x *rental) buy(ctx context.Context, budget float64, progress func(float64, string)) (*budgetView, error) {
	m := x.pools.Market
	pools, err := m.Pools(budget)
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	out := &budgetView{Budget: budget, Pools: len(pools)}
	var shown []candidate // the chosen one first
	if x.demand > 0 {
		cheapest, tried, err := x.pools.Cheapest(ctx, kairos.Rank(m, x.fluid, pools), x.demand, 1+x.others,
			func(done, of int) {
				progress(0.7*(1-math.Pow(0.99, float64(done))),
					fmt.Sprintf("trying pools from the cheapest, %d of at most %d", done, of))
			})
		if err != nil {
			return nil, err
		}
		shown, out.Tried = untried(cheapest...), tried
	} else if shown, out.Tried, err = x.most(ctx, pools, progress); err != nil {
		return nil, err
	}
	if len(shown) == 0 {
		return out, nil
	}
	same, err := x.homogeneous(ctx, budget)
	if err != nil {
		return nil, err
	}
	if same != nil {
		shown = append(shown, candidate{Ranked: *same})
	}
	if !x.bounds {
		base := 0.7
		if out.Tried == 0 {
			base = 0
		}
		err := experiment.Sweep(ctx, len(shown), runtime.NumCPU(), func(done, of int) {
			progress(base+(1-base)*float64(done)/float64(of), "simulating pools")
		}, func(ctx context.Context, i int) error {
			c := &shown[i]
			if c.allowed != nil {
				return nil
			}
			a, err := x.pools.Allowable(ctx, c.Pool, experiment.Start(x.upper.Of(c.Pool)))
			c.allowed = &a
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	views := make([]poolView, len(shown))
	for i := range views {
		views[i] = x.view(&shown[i])
	}
	if same != nil {
		out.Homogeneous = &views[len(views)-1]
		if v := out.Homogeneous; x.demand == 0 && v.Expected != nil && v.CostPerHour > 0 {
			scaled := *v.Expected * budget / v.CostPerHour
			out.Scaled = &scaled
		}
		views = views[:len(views)-1]
	}
	out.Chosen, out.RunnersUp = &views[0], views[1:]
	return out, nil
}

// most is the pool that carries most, as bounds have it or as a search finds it, and after it those with the highest
// bounds; none when no pool serves the largest queries. It also returns how many were simulated.
func (x *rental) most(ctx context.Context, pools []kairos.Pool, progress func(float64, string)) (shown []candidate,
	tried int, err error) {
	m, fluid := x.pools.Market, x.bound == fluidBound
	var by kairos.Bound = x.upper
	if fluid {
		by = x.fluid
	}
	order := kairos.Rank(m, by, pools)
	ranked := untried(order...)
	if x.search {
		all, best, err := x.pools.Best(ctx, kairos.Rank(m, x.fluid, pools), func(share float64) {
			progress(0.7*share, "looking for the best pool")
		})
		if err != nil || best < 0 {
			return nil, len(all), err
		}
		for i := range ranked {
			if at := slices.IndexFunc(all, func(t experiment.Tried) bool {
				return slices.Equal(t.Pool, ranked[i].Pool)
			}); at >= 0 {
				ranked[i].allowed = &all[at].Allowed
			}
		}
		shown, tried = append(shown, candidate{all[best].Ranked, &all[best].Allowed}), len(all)
	} else {
		at := kairos.Choose(m, order)
		if at >= 0 && fluid {
			at = 0 // as the planner does
		}
		if at < 0 {
			return nil, 0, nil
		}
		shown = append(shown, ranked[at])
	}
	for _, c := range ranked {
		if len(shown) < 1+x.others && c.Bound > 0 && !slices.Equal(c.Pool, shown[0].Pool) {
			shown = append(shown, c)
		}
	}
	return shown, tried, nil
}

// homogeneous is the pool of one base type that is held against the chosen one: the one with the highest bound, or with
// a demand the cheapest that carries it. Nil when the budget buys none.
func (x *rental) homogeneous(ctx context.Context, budget float64) (*kairos.Ranked, error) {
	m := x.pools.Market
	var best *kairos.Ranked
	for t := range m.Types {
		price := m.Types[t].Price
		if !m.Base(t) || price == 0 {
			continue
		}
		most := int(min(budget/price*(1+1e-9), 1e6))
		if limit := m.Types[t].Max; limit > 0 {
			most = min(most, limit)
		}
		of := func(n int) kairos.Ranked {
			p := make(kairos.Pool, len(m.Types))
			p[t] = n
			return kairos.Ranked{Pool: p, Bound: x.fluid.Of(p), Cost: m.Cost(p)}
		}
		n := most
		if x.demand > 0 {
			var err error
			n = 1 + sort.Search(most, func(n int) bool {
				r := of(n + 1)
				carried := r.Bound >= x.demand
				if carried && err == nil {
					carried, err = x.pools.Carries(ctx, r.Pool, x.demand)
				}
				return carried
			})
			if err != nil {
				return nil, err
			}
		}
		if n < 1 || n > most {
			continue
		}
		r := of(n)
		better := best == nil || r.Bound > best.Bound
		if x.demand > 0 {
			better = best == nil || r.Cost < best.Cost
		}
		if better {
			best = &r
		}
	}
	return best, nil
}

// view tells of a pool.
func (x *rental) view(c *candidate) poolView {
	m := x.pools.Market
	v := poolView{
		Machines: make(map[string]int), CostPerHour: m.Cost(c.Pool), Upper: x.upper.Of(c.Pool),
		Fluid: x.fluid.Of(c.Pool),
	}
	var parts []string
	for t, n := range c.Pool {
		if n > 0 {
			v.Machines[m.Types[t].Name] = n
			parts = append(parts, fmt.Sprintf("%d %s", n, m.Types[t].Name))
		}
	}
	v.text = strings.Join(parts, ", ")
	rate := x.demand
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

// rents picks the system whose rules pools are tried with: the file's if its queries run one at a time, which is what
// bounds are of, or else the one that plans pools.
func (p *planning) rents(chosen bool) error {
	rule, err := systems.NewBatcher(p.systems[0].Batcher, p.systems[0].Options)
	if err != nil {
		return err
	}
	if l, ok := rule.(batch.Loner); chosen || ok && l.Alone() {
		return nil
	}
	s, err := systems.Get("kairos")
	if err == nil {
		p.systems[0] = s
	}
	return err
}
