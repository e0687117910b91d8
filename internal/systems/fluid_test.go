package systems

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// The planner fluid keeps a placement that somebody has written down, and chooses where nobody has.
func TestFluidKeepsAWrittenPlacement(t *testing.T) {
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	known := PlannerInputs{
		Profile:   profile.Constant{Base: time.Millisecond, PerItem: time.Millisecond},
		Placement: []static.Instance{{Worker: 1, Stage: 0, Variants: []serving.VariantID{0}, Cores: 1, Slots: 3}},
	}
	for _, proposed := range []bool{false, true} {
		known.Proposed = proposed
		p, err := NewPlanner("fluid", known, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Plan(t.Context(), plan.Request{Spec: c.Spec, Rates: []float64{1}})
		if err != nil {
			t.Fatal(err)
		}
		kept := len(got.Instances) == 1 && got.Instances[0].Worker == 1 && got.Instances[0].Slots == 3
		if kept == proposed {
			t.Errorf("proposed %v: %+v", proposed, got.Instances)
		}
	}
}
