package dataplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
)

// failingPlanner returns an error for every third request, and for every third one a plan that is not valid.
type failingPlanner struct{ *simtest.Planner }

func (f failingPlanner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	switch r.Snapshot.Seq % 3 {
	case 1:
		return nil, errors.New("no room")
	case 2:
		p, err := f.Planner.Plan(ctx, r)
		if err == nil {
			p.Instances[0].Slots = -1
		}
		return p, err
	}
	return f.Planner.Plan(ctx, r)
}

// Failed planning and plans that are not valid are the same in simulator, data plane and replay, and are decisions with
// a reason.
func TestTwinPlanFailures(t *testing.T) {
	failed, invalid, adopted := 0, 0, 0
	for _, router := range []string{"weighted", "earliestfinish"} {
		for _, seed := range twins() {
			system := systems.System{Name: "twin", Router: router, Batcher: "adaptive", Scaler: "periodic"}
			system.Options.Replan = 100 * time.Millisecond
			w := newWorld(system, seed)
			w.planner = failingPlanner{w.cluster.Planner}
			w.header.Scaler, w.header.Replan = system.Scaler, system.Options.Replan
			a, b := w.simulated(t), w.live(t)
			sameJournals(t, fmt.Sprintf("%s, seed %d", router, seed), a, b)
			failed += bytes.Count(a, []byte("no room (planning failed)"))
			invalid += bytes.Count(a, []byte("(the plan is not valid)"))
			adopted += bytes.Count(a, []byte(`"k":"plan-ready"`)) - 1
		}
	}
	if failed < 10 || invalid < 10 || adopted < 2*invalid-20 {
		t.Errorf("%d requests failed, %d plans were not valid, of %d", failed, invalid, adopted)
	}
}
