package dataplane_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Simulator and data plane agree for every system of the list with its own router, batcher, scaler and options, and so
// does a replay by the journal's header. Plans are the system's own where its planner needs no solver and can plan the
// random world, and otherwise the world's. The race detector runs one system of those with equal engines,
// with one seed.
func TestTwinSystems(t *testing.T) {
	own, plans := 0, 0
	ran := make(map[string]bool) // by engine
	for _, system := range systems.All() {
		seeds := twins()
		var h journal.Header
		system.Record(&h)
		h.System = ""
		if testing.Short() && ran[fmt.Sprint(h)] {
			continue
		}
		if testing.Short() {
			seeds = seeds[len(ran)%2:][:1]
		}
		ran[fmt.Sprint(h)] = true
		for _, seed := range seeds {
			w := newWorld(system, seed)
			w.planner = w.cluster.Planner
			p, err := system.NewPlanner(systems.PlannerInputs{Profile: w.cluster.Profile})
			if err == nil && system.Planner != "static" && p.Provides()&plan.Tables == 0 {
				_, err = p.Plan(context.Background(), plan.Request{
					Spec: w.cluster.Spec, Rates: make([]float64, len(w.cluster.Spec.Apps)),
				})
				if err == nil {
					w.planner = p
					own++
				}
			}
			a := w.simulated(t)
			b := w.live(t)
			sameJournals(t, fmt.Sprintf("%s, seed %d", system.Name, seed), a, b)
			plans += bytes.Count(a, []byte(`"k":"plan-ready"`)) - 1
		}
	}
	t.Logf("%d runs with a planner of the system's own, %d plans during the runs", own, plans)
	if own == 0 || plans < 100 {
		t.Errorf("only %d runs had a planner of their own, and only %d plans were made during the runs", own, plans)
	}
}
