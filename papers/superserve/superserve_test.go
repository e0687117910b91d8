package superserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/papers/superserve"
	"github.com/sluice-serving/sluice/policy/plan"
)

// A batch may take the whole objective: 9 ms for eight items where the objective is 10 ms. Half of it would allow four.
func TestUsesTheWholeObjective(t *testing.T) {
	w := simtest.Uniform(2, time.Millisecond, time.Millisecond, 10*time.Millisecond, 8)
	out, err := superserve.Planner{Profile: w.Profile}.Plan(context.Background(), plan.Request{Spec: w.Spec})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Instances) != 2 || out.Instances[0].Variants[0].Limit != 8 || out.Planner != "resident" {
		t.Errorf("%+v", out.Instances)
	}
}
