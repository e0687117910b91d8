package scrooge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Options Options
}

// Options of a Planner. The zero value allocates exactly and packs by our rules.
type Options struct {
	// Method makes the allocation of a graph; nil means Exact.
	Method Method
	// AsWritten places as §3.4 does: one allocation for each graph, partial uses by best fit in the order in which they
	// come, and again without a type of which there are too few machines.
	AsWritten bool
	// Single plans for one batch at a time (§4.4, without spatial multiplexing).
	Single bool
	// MostAccurate leaves each stage its most accurate variant. Otherwise all variants that meet the app's floor may be
	// used, and cost decides.
	MostAccurate bool
	// Headroom is the factor on the demand; 0 means 1.
	Headroom float64
	// Within is the part of the objective that is planned with. The rest is for items that wait behind others and for
	// batches of other stages on the same machine, which the worst latency of §3.3 does not count. 0 means all of it,
	// as in the paper, and then nothing is left for them.
	Within float64
}

// margin is the time that a plan keeps free besides the worst latency of §3.3. That assumes that items come one by one
// and wait for nothing but a batch to fill.
type margin struct {
	// burstFactor is the ratio of the items of a query that come at once to their mean; 0 for items that come one by
	// one.
	burstFactor float64
	// part is the part of the objective that is planned with.
	part float64
	// keepTargets leaves out the variants with which an app might miss its accuracy target.
	keepTargets bool
}

// margins are tried one after the other until one leaves an allocation: a single machine may be too slow for all items
// that come at once.
func (o *Options) margins() []margin {
	switch within := o.Within; {
	case within <= 0 || within >= 1:
		return []margin{{part: 1}} // as in the paper
	case o.AsWritten:
		return []margin{{part: within}, {part: 1}}
	default:
		return []margin{
			{burstFactor: burstFactor, part: within}, {burstFactor: 1, part: within}, {part: within}, {part: 1},
		}
	}
}

// burstFactor exceeds 1 because streams differ, and items wait in those that send most at once.
const burstFactor = 2

// Name implements plan.Planner.
func (p *Planner) Name() string { return "scrooge" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Budgets
}

// Plan implements plan.Planner. If the workers do not carry the demand, all apps get the largest part of it that they
// carry, and Shortage says what is missing. It fails when some app has a stage that nothing serves within the
// objective. Accuracy targets are kept where all of the demand is carried with them.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if slices.ContainsFunc(r.Spec.Apps, func(a serving.App) bool { return a.AccuracyTarget > a.Floor }) {
		out, err := p.planWith(ctx, r, true)
		if err == nil && out.Shortage == nil || ctx.Err() != nil {
			return out, err
		}
	}
	return p.planWith(ctx, r, false)
}

// planWith plans with the first margin that leaves an allocation.
func (p *Planner) planWith(ctx context.Context, r plan.Request, keepTargets bool) (*plan.Plan, error) {
	var first error
	for _, c := range p.Options.margins() {
		c.keepTargets = keepTargets
		out, err := p.plan(ctx, r, p.read(r, c))
		if err == nil || ctx.Err() != nil {
			return out, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (p *Planner) plan(ctx context.Context, r plan.Request, x *request) (*plan.Plan, error) {
	s := &candidateSearch{request: x, solved: make(map[string]*solution)}
	all, err := s.best(ctx, 1)
	if err != nil {
		return nil, err
	}
	if all.fits() {
		return x.plan(r, all, nil, 1, s.bound(1)), nil
	}
	most, part, err := capacity.LargestPart(func(part float64) (*candidate, bool, error) {
		c, err := s.best(ctx, part)
		return c, err == nil && c.fits(), err
	})
	if err != nil {
		return nil, err
	}
	if part == 0 {
		return nil, fmt.Errorf("the workers carry less than %.2f %% of the demand: it takes %s more",
			100*capacity.DemandTolerance, x.missing(all))
	}
	return x.plan(r, most, all, part, s.bound(part)), nil
}

// unservable says why a pipeline has no allocation at any rate.
func (x *request) unservable(g *pipeline, err error) error {
	app := &x.spec.Apps[g.app]
	devices := capacity.TypesOf(x.workers)
	if len(devices) == 0 {
		return fmt.Errorf("no worker is left to plan for: all %d are down", len(x.spec.Workers))
	}
	for i := range g.stages {
		if len(g.stages[i].modes) == 0 {
			return capacity.Unservable(x.believed, x.spec, g.stages[i].id,
				capacity.StageDemand{App: g.app, Budget: g.budget}, devices, make([]bool, len(x.spec.Variants)))
		}
	}
	var in *Infeasible
	if !errors.As(err, &in) || in.Least == 0 {
		return fmt.Errorf("app %q: %w", app.Name, err)
	}
	return fmt.Errorf(
		"app %q: its stages cannot be served within %v from end to end: the least is %v, of which stage %q takes %v. "+
			"Raise slo.latency, or measure faster variants or types of it, or smaller batches",
		app.Name, g.budget, in.Least.Round(10*time.Microsecond), x.spec.Stages[g.stages[in.Module].id].Name,
		in.Own.Round(10*time.Microsecond))
}

// missing lists, in words, the machines that a candidate takes beyond those there are.
func (x *request) missing(c *candidate) string {
	out := ""
	for d, n := range c.short() {
		if n > 0 {
			if out != "" {
				out += ", "
			}
			out += fmt.Sprintf("%d %s", n, x.spec.DeviceTypes[d].Name)
		}
	}
	return out
}

// near reports whether numbers are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-9) }
