package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
)

// Queries that have 40 ms share machines with ones that have 10 s, and whose batches last from a second on. Machine time
// is not scarce, but a batch cannot be taken back: the default system leaves as many machines to the urgent ones as they
// need. Before it did, 8, 35, 21, 13 and 0.7 % were late.
func TestUrgentQueriesFindMachines(t *testing.T) {
	for _, c := range []struct {
		machines     int
		urgent, slow float64 // queries/s
	}{{2, 1, 1}, {3, 60, 3}, {3, 1200, 3}, {6, 1200, 8}, {12, 1200, 8}} {
		t.Run(fmt.Sprintf("%d machines, %v and %v queries a second", c.machines, c.urgent, c.slow), func(t *testing.T) {
			t.Parallel()
			late, all := serveUrgent(t, c.machines, c.urgent, c.slow)
			if share := float64(late) / float64(all); share > 0.003 {
				t.Errorf("%d of %d late: %.2f %%, want 0.3 at most", late, all, 100*share)
			}
		})
	}
}

// serveUrgent runs the default system and counts its queries.
func serveUrgent(t *testing.T, machines int, urgent, slow float64) (late, all int) {
	t.Helper()
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 4}}}
	var m serving.Measurements
	var place []static.Instance
	for w := range machines {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprint("w", w)})
	}
	for a, x := range []struct {
		name       string
		objective  time.Duration
		base, each []time.Duration // by variant
	}{
		{"urgent", 40 * time.Millisecond, []time.Duration{5e6}, []time.Duration{1e6}},
		{"slow", 10 * time.Second, []time.Duration{900e6, 200e6}, []time.Duration{100e6, 30e6}},
	} {
		s := serving.StageID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: x.name, SLO: serving.SLO{Latency: x.objective, Percentile: 99}, Weight: 1, QueueLimit: 1 << 20,
			Stages: []serving.StageID{s},
		})
		stage := serving.Stage{Name: "only", App: serving.AppID(a)}
		for v := range x.base {
			id := serving.VariantID(len(spec.Variants))
			stage.Variants = append(stage.Variants, id)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprint(x.name, v), Stage: s, Accuracy: 0.9 - 0.1*float64(v), MaxBatch: 16,
			})
			for _, n := range []int{1, 2, 4, 8, 16} {
				takes := x.base[v] + time.Duration(n)*x.each[v]
				m.Latency = append(m.Latency, simtest.Point(id, 0, n, 1, takes, 0))
			}
		}
		spec.Stages = append(spec.Stages, stage)
		for w := range spec.Workers {
			place = append(place, static.Instance{
				Worker: serving.WorkerID(w), Stage: s, Variants: stage.Variants, Slots: 1, Limit: 16,
			})
		}
	}
	believed, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	system, err := systems.Get(systems.Default)
	if err != nil {
		t.Fatal(err)
	}
	system.Scaler = "fixed"
	planner := static.Planner{Profile: believed, Instances: place, Pooled: true}
	first, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	e, err := system.Engine(spec, believed, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	machinery, err := truth.NewTable(spec, m, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	load := workload.Spec{Seed: 1, DurationS: 60, Apps: []workload.AppSpec{
		{App: "urgent", Process: "poisson", Rate: urgent}, {App: "slow", Process: "poisson", Rate: slow},
	}}
	source, err := load.Source(func(name string) (serving.AppID, error) {
		if name == "slow" {
			return 1, nil
		}
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(Config{
		Spec: spec, Engine: e, Truth: machinery, Initial: first, Warm: true, Source: source,
		Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
			for i := range decisions {
				if d := &decisions[i]; d.Kind == engine.EndQuery {
					all++
					if d.Outcome != serving.Served || now > d.Deadline {
						late++
					}
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return late, all
}
