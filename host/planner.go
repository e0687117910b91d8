package host

import (
	"errors"

	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// Planner builds a system's planner over what is believed. Policies that it makes in advance are kept in
// PoliciesFolder beside the sluice.yaml, where the next one finds them. It makes one plan at a time. An error is of
// kind fault.Config, or fault.Missing without a solver that it needs.
func (p *Profiled) Planner(s systems.System) (plan.Planner, error) {
	return p.PlannerWith(s, p.policies.store)
}

// PlannerWith is Planner with another place to keep policies in.
func (p *Profiled) PlannerWith(s systems.System, policies ramsis.Store) (plan.Planner, error) {
	if p.file.Store == "" {
		return p.plannerOver(p.believed, s, policies)
	}
	return systems.NewOpen(p.believed, func(believed profile.Profile) (plan.Planner, error) {
		return p.plannerOver(believed, s, policies)
	})
}

// plannerOver builds a system's planner over other beliefs than the profile's. Where functions are deployed it also
// places what the file does not speak of.
func (p *Profiled) plannerOver(believed profile.Profile, s systems.System, policies ramsis.Store) (plan.Planner,
	error) {
	known := systems.World{
		Profile: believed, Spread: p.file.Store != "", Policies: policies, Made: p.policies.made,
	}
	for _, i := range p.tables.Placement {
		known.Placement = append(known.Placement, static.Instance(i))
	}
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
