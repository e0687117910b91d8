package kairos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Options tune the planner. The zero value is the paper's bound without a budget.
type Options struct {
	Budget float64 // $/h; 0 for none
	// Fluid takes the pool with the highest bound of the linear program (Fluid) instead of the one that §5.2 chooses by
	// Eq. 15 (Upper) and similarity.
	Fluid bool
	// Queueing takes the pool with the highest estimate of Queueing, which takes from the linear program what waiting
	// costs. It implies Fluid.
	Queueing bool
	// Trials is of how many pools with the highest estimates Planner.Trial finds the best; 0 means DefaultTrials, a
	// negative number none. It counts with Queueing only.
	Trials int
	// Late is the share of the queries that the linear program may leave out. 0 means the share that the app's
	// percentile allows, a negative number means none.
	Late float64
	// Explores begins with the highest bound and goes on as Algorithm 1 does (KAIROS+), by what pools have shown while
	// they served: plan.Request.Experience. It concerns the app that shares the budget with no other.
	Explores bool
}

// Planner implements plan.Planner. Of the spec's workers it rents the pool that §5.2 chooses under the budget and
// leaves the others empty. Each rented worker runs one instance. The planner keeps nothing between plans.
//
// Without a budget one app gets every worker that serves anything in time. Several apps share the budget such that the
// smallest ratio of bound to demand is as large as possible while each takes the cheapest pool that reaches it; the
// paper knows one app only. Where there are too few machines for one each, apps with less demand share machines of
// others.
type Planner struct {
	Profile profile.Profile
	Options Options
	// Trial tries pools by simulation; nil leaves the choice to the estimate.
	Trial Trial
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "kairos" }

// Provides implements plan.Planner. Limits are missing: batch limits are those of the model and do not follow from the
// objective. One query runs at a time (§6), and the router decides which query may run where.
func (p *Planner) Provides() plan.Sections { return plan.Shares }

// Plan implements plan.Planner. It does not plan for sizes that no machine serves in time; Forecast.Violation is then
// their share. It fails when an app has several stages, when nothing serves even its smallest queries in time, or when
// the budget is too small for any app.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x, err := p.read(r)
	if err != nil {
		return nil, err
	}
	x.explore()
	if err := x.rent(ctx); err != nil {
		return nil, err
	}
	out, err := x.plan()
	if err != nil {
		return nil, err
	}
	return out, out.Validate(r.Spec)
}

// state is a request and the plan for it as far as it is made.
type state struct {
	r           plan.Request
	o           Options
	trial       Trial
	budgetLeft  float64 // in $/h
	workersLeft []int   // workers that are left, by DeviceTypeID
	// by DeviceTypeID: those that are up
	workers  [][]serving.WorkerID
	apps     []appRent // by AppID
	believed profile.Profile
	broken   []bool // by VariantID
}

// appRent is an app, the variant chosen for it, and what it rents.
type appRent struct {
	app      serving.AppID
	stage    serving.StageID
	variant  serving.VariantID
	rate     float64 // queries/s
	market   *Market // sizes that can be served, on the types that are left; nil where no latency is known
	excluded float64 // share of the queries that the market leaves out
	bound    Bound
	pool     Pool   // of market
	unknown  []bool // by DeviceTypeID: it is not known how fast the variant is there
	explored []int  // by DeviceTypeID: workers rented to find out
	sharing  bool   // nothing is left to rent for it: it shares machines of others
}

// read lists the workers that can be rented and makes the market of each app.
func (p *Planner) read(r plan.Request) (*state, error) {
	x := &state{r: r, o: p.Options, trial: p.Trial, budgetLeft: p.Options.Budget}
	x.o.Fluid = x.o.Fluid || x.o.Queueing
	if !(x.budgetLeft >= 0) || math.IsInf(x.budgetLeft, 0) {
		return nil, fmt.Errorf("the budget is %v $/h, want a finite number of at least 0, which is no limit",
			x.budgetLeft)
	}
	believed := r.Believed(p.Profile)
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.believed, x.broken = believed, broken
	x.workers, x.workersLeft = make([][]serving.WorkerID, len(r.Spec.DeviceTypes)), make([]int, len(r.Spec.DeviceTypes))
	for w, y := range r.Spec.Workers {
		if !down[w] {
			x.workers[y.DeviceType] = append(x.workers[y.DeviceType], serving.WorkerID(w))
		}
	}
	all := 0
	for d := range x.workersLeft {
		x.workersLeft[d] = len(x.workers[d])
		if most := r.Spec.DeviceTypes[d].MaxMachines; most > 0 {
			x.workersLeft[d] = min(x.workersLeft[d], most)
		}
		all += x.workersLeft[d]
	}
	if all == 0 {
		return nil, fmt.Errorf("no worker is left to plan for: all %d are down", len(r.Spec.Workers))
	}
	asked := capacity.StageDemands(r.Spec, r.Rates)
	for a := range r.Spec.Apps {
		app := &r.Spec.Apps[a]
		if len(app.Stages) > 1 {
			return nil, fmt.Errorf("app %q has %d stages: planner kairos rents machines for apps of one; use planner "+
				"proteus", app.Name, len(app.Stages))
		}
		n := appRent{app: serving.AppID(a), stage: app.Stages[0], rate: asked[app.Stages[0]].Rate}
		if err := x.chooseVariant(believed, &n, asked[n.stage], broken); err != nil {
			return nil, err
		}
		x.apps = append(x.apps, n)
	}
	return x, nil
}

// chooseVariant gives an app its variant: the most accurate one that some type serves in time at every size; if there
// is none, the one of which some type serves most queries. Of variants about which nothing is known it takes the most
// accurate.
func (x *state) chooseVariant(believed profile.Profile, n *appRent, asked capacity.StageDemand, broken []bool) error {
	spec := x.r.Spec
	app := &spec.Apps[n.app]
	var variants []serving.VariantID
	for _, v := range spec.Stages[n.stage].Variants {
		if !broken[v] && spec.Variants[v].Accuracy >= app.Floor {
			variants = append(variants, v)
		}
	}
	slices.SortStableFunc(variants, func(a, b serving.VariantID) int {
		switch y, z := spec.Variants[a].Accuracy, spec.Variants[b].Accuracy; {
		case y > z:
			return -1
		case y < z:
			return 1
		}
		return 0
	})
	if len(variants) == 0 {
		return fmt.Errorf("app %q: no variant is left: each has failed to load or lies below accuracy_floor %v",
			app.Name, app.Floor)
	}
	var failed error
	most := -1.0
	for _, v := range variants {
		m, unknown, err := x.marketOf(believed, v, asked)
		if err != nil {
			return fmt.Errorf("app %q, variant %q: %w", app.Name, spec.Variants[v].Name, err)
		}
		cut, withoutShare := m.Servable(x.o.Fluid, x.lateShare(n.app))
		if cut == nil && !slices.Contains(unknown, true) {
			if failed == nil {
				failed = fmt.Errorf("app %q, variant %q: %w", app.Name, spec.Variants[v].Name,
					cmp.Or(m.ExplainNoBase(), errMemory))
			}
			continue
		}
		if served := 1 - withoutShare; served > most+rounding {
			n.variant, n.market, n.unknown, most = v, m, unknown, served
			if cut == nil {
				n.market = nil
			}
		}
	}
	if most < 0 {
		return failed
	}
	n.explored = make([]int, len(spec.DeviceTypes))
	return nil
}

var errMemory = errors.New("the model does not fit the memory of any worker that is left")

// marketOf returns the market of a variant on the known types that are left, and by DeviceTypeID the types about which
// nothing is known.
func (x *state) marketOf(believed profile.Profile, v serving.VariantID, asked capacity.StageDemand) (
	m *Market, unknown []bool, err error) {
	spec := x.r.Spec
	m, err = NewMarket(believed, spec, v, x.r.Mix(asked.App), x.r.Prices, asked.Budget)
	if err != nil {
		return nil, nil, err
	}
	unknown = make([]bool, len(spec.DeviceTypes))
	var types []Type
	for _, t := range m.Types {
		t.Max = x.workersLeft[t.Device]
		limit := maxItems(spec, v, t.Device)
		switch {
		case t.Max == 0 || limit == 0:
			continue
		case believed.Latency(v, t.Device, 1, 1) >= profile.Unknown:
			unknown[t.Device] = true
			continue
		}
		for c := range t.Latency {
			if items, _ := m.Mix.Class(c); items > limit {
				t.Latency[c] = profile.Unknown
			}
		}
		types = append(types, t)
	}
	m.Types = types
	return m, unknown, nil
}

// maxItems returns how many items of a variant a type can hold at once; 0 when it cannot even hold the model.
func maxItems(spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID) int {
	x, device := &spec.Variants[v], &spec.DeviceTypes[d]
	limit := x.MaxBatch
	if device.MemoryBytes > 0 {
		if x.MemoryBytes > device.MemoryBytes {
			return 0
		}
		if x.ItemBytes > 0 {
			limit = min(limit, int((device.MemoryBytes-x.MemoryBytes)/x.ItemBytes))
		}
	}
	return limit
}

// lateShare returns the share of an app's queries that may miss its objective.
func (x *state) lateShare(a serving.AppID) float64 {
	if x.o.Late != 0 {
		return max(x.o.Late, 0)
	}
	return x.r.Spec.Apps[a].SLO.Allowed()
}
