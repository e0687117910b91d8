package systems

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
)

// asWritten is the planner of systems that name none.
const asWritten = "static"

var planners = slices.Concat(writtenPlanners, proteusPlanners, ramsisPlanners, tidalPlanners, infaasPlanners,
	loadAdaptivePlanners, inflessPlanners, scroogePlanners, fluidPlanners, kairosPlanners, superServePlanners,
	symphonyPlanners, ipaPlanners, lokiPlanners)

var writtenPlanners = plannerTable{
	{asWritten, "runs the placement that the configuration writes down, with shares by capacity", "ours", newStatic},
}

// Written reports whether a planner runs the written placement: static does, and "" means static. All others decide the
// settings of each instance themselves.
func Written(planner string) bool { return cmp.Or(planner, asWritten) == asWritten }

// Planners returns the names of all planners.
func Planners() []string { return namesOf(planners) }

// NewPlanner builds a planner by name; "" is static. It fails when the world has no profile, and with ErrNoSolver when
// the planner needs a solver and the world has none.
func NewPlanner(name string, w PlannerInputs, o Options) (plan.Planner, error) {
	fresh, err := find(Planner, planners, cmp.Or(name, asWritten))
	if err != nil {
		return nil, err
	}
	if w.Profile == nil {
		return nil, errors.New("a planner needs a profile: measure one with 'sluice profile'")
	}
	return fresh(w, o)
}

// NewPlanner builds the system's planner.
func (s System) NewPlanner(w PlannerInputs) (plan.Planner, error) {
	if b, err := NewBatcher(s.Batcher, s.Options); err == nil {
		w.ByDemand, w.Unbatched = !b.Traits().Chooses, b.Traits().Unbatched
	}
	if r, err := NewRouter(s.Router, s.Options); err == nil {
		w.Pooled, w.Seconds = r.Traits().Global, r.Traits().Seconds
	}
	return NewPlanner(s.Planner, w, s.Options)
}

func newStatic(w PlannerInputs, _ Options) (plan.Planner, error) {
	return &static.Planner{
		Profile: w.Profile, Instances: w.Placement, Proposed: w.Proposed, ByDemand: w.ByDemand,
		Unbatched: w.Unbatched, Pooled: w.Pooled, Spread: w.Spread,
	}, nil
}
