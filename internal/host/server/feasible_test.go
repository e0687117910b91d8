package server

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/serving"
)

// An objective that was proposed, and that is shorter than a run, is no reason to refuse a model: plans go by what
// would be proposed now. One that somebody asked for is.
func TestProposedObjectivesRefuseNoModel(t *testing.T) {
	s := unserved(t)
	err := s.refiner.manager.Extend(t.Context(), func(x *functions.Extension) error {
		for _, proposed := range []bool{true, false} {
			spec := x.Spec.WithObjective(0, 1)
			spec.Apps[0].SLO.Proposed = proposed
			g, err := x.Growth(spec, x.Measured)
			if err != nil {
				return err
			}
			if _, err := x.Plan(t.Context(), g); (err == nil) != proposed {
				t.Errorf("proposed: %v, of %v: %v", proposed, serving.Time(1), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
