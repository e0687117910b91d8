package sim

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// tidalWorld has n workers and three models, each about twice as slow and more accurate than the one before.
func tidalWorld(n int) (*serving.Spec, serving.Measurements) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 1}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Late: serving.ServeLate,
				Weight: 1, QueueLimit: 1 << 20, Stages: []serving.StageID{0},
			},
		},
		Stages: []serving.Stage{{Name: "app"}},
	}
	for range n {
		spec.Workers = append(spec.Workers, serving.Worker{Name: "w"})
	}
	var m serving.Measurements
	for v, accuracy := range []float64{0.6, 0.75, 0.83} {
		id := serving.VariantID(v)
		spec.Stages[0].Variants = append(spec.Stages[0].Variants, id)
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: string(rune('a' + v)), Accuracy: accuracy, MaxBatch: 16,
		})
		for b := 1; b <= 16; b++ {
			takes := time.Duration(1<<v) * (10*time.Millisecond + time.Duration(b)*8*time.Millisecond)
			m.Latency = append(m.Latency, simtest.Point(id, 0, b, 1, takes, 0))
		}
	}
	return spec, m
}

// Tidal reaches the accuracy of its plan and comes near the optimum, through the whole engine, at loads from an idle
// pool to a full one, whether it knows the load or estimates it. Every query ends, and a second run is the same.
func TestTidalReachesItsForecast(t *testing.T) {
	const workers = 24
	spec, m := tidalWorld(workers)
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	believed, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	carries := workers * 11 / 0.098 // the fastest model's largest batch in time
	for _, known := range []bool{true, false} {
		s, err := systems.Get("tidal")
		if err != nil {
			t.Fatal(err)
		}
		s.Options.Policies.Known = known
		planner, err := s.NewPlanner(systems.PlannerInputs{Profile: believed})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []float64{0.1, 0.3, 0.5, 0.7, 0.85} {
			rate := part * carries
			p, err := planner.Plan(t.Context(), plan.Request{Spec: spec, Rates: []float64{rate}})
			if err != nil {
				t.Fatal(err)
			}
			run := func() (accuracy float64, late, all int) {
				e, err := s.Engine(spec, believed, planner.Provides())
				if err != nil {
					t.Fatal(err)
				}
				tr, err := truth.NewTable(spec, m, truth.Exact, nil)
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				r, err := Run(Config{Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true,
					Source: &poisson{
						rng: workload.Rand(3, "arrivals"), gap: float64(time.Second) / rate, left: int(20 * rate),
					},
					Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
						for i := range out {
							if d := &out[i]; d.Kind == engine.EndQuery {
								all++
								if d.Outcome != serving.Served || d.Late {
									late++
								} else {
									sum += d.Accuracy
								}
							}
						}
					}})
				if err != nil {
					t.Fatal(err)
				}
				if int64(all) != r.Queries {
					t.Fatalf("%d of %d queries ended", all, r.Queries)
				}
				return sum / float64(all-late), late, all
			}
			accuracy, late, all := run()
			if again, l, _ := run(); again != accuracy || l != late {
				t.Errorf("at %v of what the pool carries: two runs differ", part)
			}
			if accuracy < p.Forecast.Accuracy-0.008 || accuracy > p.Forecast.Accuracy+0.008 {
				t.Errorf("at %v of what the pool carries, load known: %v: accuracy %.4f, promised %.4f", part, known,
					accuracy, p.Forecast.Accuracy)
			}
			if float64(late) > 0.001*float64(all) {
				t.Errorf("at %v of what the pool carries, load known: %v: %d of %d late", part, known, late, all)
			}
		}
	}
}
