package sim

import (
	"testing"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// fixed returns an engine with a system's rules for instances that stay as they are, and the plan that places them.
func fixed(t *testing.T, system string, spec *serving.Spec, believed profile.Profile,
	place []static.Instance) (*engine.Engine, *plan.Plan) {
	t.Helper()
	s, err := systems.Get(system)
	if err != nil {
		t.Fatal(err)
	}
	s.Scaler = "fixed"
	planner := static.Planner{Profile: believed, Instances: place, Pooled: true}
	p, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Engine(spec, believed, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}
