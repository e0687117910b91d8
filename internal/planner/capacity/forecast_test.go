package capacity_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Accuracy is that of what is served. An app of which nothing is left out does not make the plan one that sheds.
func TestForesee(t *testing.T) {
	var p plan.Plan
	capacity.Foresee(&p, []capacity.Outlook{
		{Demand: 10, Capacity: 30, Served: 10, Accuracy: 0.9}, {Demand: 20, Capacity: 15, Served: 15, Accuracy: 0.5},
	})
	if p.Shed != nil || p.Forecast.Throughput != 45 || math.Abs(p.Forecast.Accuracy-(9+7.5)/25) > 1e-12 {
		t.Errorf("%+v", p)
	}
	p = plan.Plan{}
	capacity.Foresee(&p, []capacity.Outlook{{Demand: 10, Capacity: 30}, {Demand: 20, Capacity: 15, Missing: 5}})
	if len(p.Shed) != 2 || p.Shed[0] != 0 || p.Shed[1] != 5 || p.Demand[1] != 20 || p.Capacity[0] != 30 ||
		p.Forecast.Accuracy != 0 {
		t.Errorf("%+v", p)
	}
}

func TestLargestPart(t *testing.T) {
	for _, most := range []float64{0, 0.001, 0.3, 0.999} {
		fit := func(part float64) (float64, bool, error) { return 2 * part, part <= most, nil }
		best, part, err := capacity.LargestPart(fit)
		if err != nil || part > most || part < most-capacity.DemandTolerance || best != 2*part {
			t.Errorf("of what fits up to %v: %v with %v, %v", most, part, best, err)
		}
	}
	failed := errors.New("failed")
	_, _, err := capacity.LargestPart(func(float64) (int, bool, error) { return 0, true, failed })
	if !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
}
