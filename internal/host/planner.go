package host

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner builds a system's planner over the latency profile. A planner that makes policies keeps them in
// PoliciesFolder and finds them there. It is not safe for concurrent use. An error is of kind fault.Config, or of kind
// fault.Missing when the planner needs a solver and it does not start.
func (p *Profiled) Planner(s systems.System) (plan.Planner, error) {
	return p.PlannerWith(s, p.policies.store)
}

// PlannerWith is Planner with another store of policies.
func (p *Profiled) PlannerWith(s systems.System, policies ramsis.Store) (plan.Planner, error) {
	open := func() (*systems.Open, error) { return p.OpenPlanner(s, policies) }
	if p.file.Store != "" {
		return open()
	}
	first, err := p.PlannerOver(p.latencies, s, policies, nil, false)
	if err != nil || !p.Fleet().HasCatalog() {
		return first, err
	}
	return &growing{Planner: first, spec: p.Spec(), open: open}, nil
}

// OpenPlanner builds a system's planner of what is open of a spec that grows.
func (p *Profiled) OpenPlanner(s systems.System, policies ramsis.Store) (*systems.Open, error) {
	return systems.NewOpen(p.known(), func(latencies profile.Profile, open *serving.Open) (plan.Planner, error) {
		return p.PlannerOver(latencies, s, policies, open, true)
	})
}

// growing is a planner for a spec that may grow: the one that knows all of what was measured until the spec has grown,
// and then one that knows what is open.
type growing struct {
	plan.Planner
	spec  *serving.Spec // as it was at first
	open  func() (*systems.Open, error)
	grown *systems.Open
}

// PlannerOf returns the planner that makes the plans of a spec: where that may grow and has not, the one that knows all
// of what was measured.
func PlannerOf(p plan.Planner, spec *serving.Spec) plan.Planner {
	if g, ok := p.(*growing); ok && len(spec.Apps) > 0 && !g.hasGrown(spec) {
		return g.Planner
	}
	return p
}

func (g *growing) hasGrown(spec *serving.Spec) bool {
	return spec != g.spec && !spec.EqualButFanOuts(g.spec)
}

// Plan implements plan.Planner.
func (g *growing) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if !g.hasGrown(r.Spec) {
		if len(r.Spec.Apps) == 0 {
			return plan.Empty(g.Name(), r.Snapshot), nil
		}
		return g.Planner.Plan(ctx, r)
	}
	if g.grown == nil {
		made, err := g.open()
		if err != nil {
			return nil, err
		}
		g.grown = made
	}
	return g.grown.Plan(ctx, r)
}

// known is what is known of the configuration's spec.
func (p *Profiled) known() plan.Known {
	return plan.Known{Measurements: p.measurements, Profile: p.latencies}
}

// PlannerOver builds a system's planner over another profile. open is the part of the spec that it plans for, nil for
// all of it. Where the world grows, it also places stages that the file does not place.
func (p *Profiled) PlannerOver(latencies profile.Profile, s systems.System, policies ramsis.Store,
	open *serving.Open, grows bool) (plan.Planner, error) {
	inputs := systems.PlannerInputs{
		Profile: latencies, Proposed: p.tables.Proposed, Spread: grows || p.file.Models.Changes(), Policies: policies,
		Made: p.policies.made, Trials: experiment.Trials{System: s, Known: p.known()},
	}
	for _, i := range p.tables.Placement {
		if i, ok := placedIn(i, open); ok {
			inputs.Placement = append(inputs.Placement, static.Instance(i))
		}
	}
	made, err := s.NewPlanner(inputs)
	if errors.Is(err, systems.ErrNoSolver) {
		if inputs.Solver, err = Solver(); err != nil {
			return nil, err
		}
		made, err = s.NewPlanner(inputs)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return made, nil
}

// placedIn is an instance of the placement in the part of the spec that is open; ok is false for one of an app that is
// closed.
func placedIn(i config.Instance, open *serving.Open) (_ config.Instance, ok bool) {
	if open == nil {
		return i, true
	}
	i.Stage = open.StageOf[i.Stage]
	variants := i.Variants
	i.Variants = nil
	for _, v := range variants {
		if x := open.VariantOf[v]; x != serving.None {
			i.Variants = append(i.Variants, x)
		}
	}
	return i, i.Stage != serving.None && len(i.Variants) > 0
}
