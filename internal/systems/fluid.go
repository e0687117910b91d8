package systems

import (
	"context"

	"github.com/sluice-serving/sluice/internal/planner/fluid"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

var fluidPlanners = plannerTable{
	{
		"fluid", "chooses which machines are used and what each holds loaded, by a linear program over their time, " +
			"and tries plans before they are adopted", "ours", newFluid,
	},
}

// newFluid keeps a placement that somebody has written down as it is.
func newFluid(w PlannerInputs, o Options) (plan.Planner, error) {
	if !w.Proposed && len(w.Placement) > 0 {
		return newStatic(w, o)
	}
	out := &fluid.Planner{
		Profile: w.Profile,
		Options: fluid.Options{
			Budget: o.Renting.Budget, Trials: o.Renting.Trials, Pooled: w.Pooled, Apart: o.Planning.Apart,
			Certain: o.Planning.Certain, SecondAnswers: w.Seconds,
		},
	}
	if w.Trials != nil {
		out.Try = w.Trials.Try
	}
	return &wholeOrParts{Planner: out, parts: &packing.Planner{
		Profile: w.Profile, Options: packing.Options{Exact: true, Share: true},
	}}, nil
}

// wholeOrParts plans whole machines, of which the fluid program shares the time, or parts of machines where only these
// were measured: they are packed.
type wholeOrParts struct {
	*fluid.Planner
	parts *packing.Planner
}

// Whole returns the planner of whole machines.
func (p *wholeOrParts) Whole() *fluid.Planner { return p.Planner }

// Provides implements plan.Planner.
func (p *wholeOrParts) Provides() plan.Sections { return p.Planner.Provides() | p.parts.Provides() }

// Plan implements plan.Planner.
func (p *wholeOrParts) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if onlyParts(r.Spec, r.Believed(p.Profile)) {
		return p.parts.Plan(ctx, r)
	}
	return p.Planner.Plan(ctx, r)
}

// onlyParts reports whether parts of machines are declared that run a variant, and whole machines run none.
func onlyParts(spec *serving.Spec, believed profile.Profile) bool {
	runs := func(d serving.DeviceTypeID) bool {
		for v := range spec.Variants {
			if believed.Latency(serving.VariantID(v), d, 1, 1) < profile.Unknown {
				return true
			}
		}
		return false
	}
	parts := false
	for d := range spec.DeviceTypes {
		if t := &spec.DeviceTypes[d]; t.Part && !t.Placed {
			parts = parts || runs(serving.DeviceTypeID(d))
		}
	}
	if !parts {
		return false
	}
	for w := range spec.Workers {
		if runs(spec.Workers[w].DeviceType) {
			return false
		}
	}
	return true
}
