package host

import (
	"errors"

	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// Planner builds a system's planner over the latency profile. A planner that makes policies keeps them in
// PoliciesFolder and finds them there. It is not safe for concurrent use. An error is of kind fault.Config, or of kind
// fault.Missing when the planner needs a solver and it does not start.
func (p *Profiled) Planner(s systems.System) (plan.Planner, error) {
	return p.PlannerWith(s, p.policies.store)
}

// PlannerWith is Planner with another store of policies.
func (p *Profiled) PlannerWith(s systems.System, policies ramsis.Store) (plan.Planner, error) {
	if p.file.Store == "" {
		return p.plannerOver(p.latencies, s, policies)
	}
	return systems.NewOpen(p.latencies, func(open profile.Profile) (plan.Planner, error) {
		return p.plannerOver(open, s, policies)
	})
}

// plannerOver builds a system's planner over another profile. With a functions' store, it also places stages that the
// file does not place.
func (p *Profiled) plannerOver(latencies profile.Profile, s systems.System, policies ramsis.Store) (plan.Planner,
	error) {
	known := systems.PlannerInputs{
		Profile: latencies, Proposed: p.tables.Proposed, Spread: p.file.Store != "", Policies: policies,
		Made: p.policies.made,
	}
	for _, i := range p.tables.Placement {
		known.Placement = append(known.Placement, static.Instance(i))
	}
	trials := experiment.Trials{System: s}
	if p.file.Store == "" { // functions have numbers of their own, which measurements do not know
		trials.Measured, trials.Beliefs = p.measurements, p.latencies
	}
	known.Trials = trials
	made, err := s.NewPlanner(known)
	if errors.Is(err, systems.ErrNoSolver) {
		if known.Solver, err = p.Solver(); err != nil {
			return nil, err
		}
		made, err = s.NewPlanner(known)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return made, nil
}
