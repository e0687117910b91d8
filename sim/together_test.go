package sim

import (
	"context"
	"math/rand/v2"
	"slices"
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

// Two models on one worker, with a batch of each at the same time: both are believed to take, and take, the time of two
// at once. With cores of their own each takes the time of one alone.
func TestModelsThatShareAWorkerSlowEachOther(t *testing.T) {
	const alone, beside = 10 * time.Millisecond, 16 * time.Millisecond
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 2}}, Workers: []serving.Worker{{Name: "w"}},
	}
	var m serving.Measurements
	for a := range 2 {
		spec.Apps = append(spec.Apps, serving.App{
			SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 10,
			Stages: []serving.StageID{serving.StageID(a)},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(a)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{Stage: serving.StageID(a), MaxBatch: 1})
		m.Latency = append(m.Latency, simtest.Point(serving.VariantID(a), 0, 1, 1, alone, 0),
			simtest.Point(serving.VariantID(a), 0, 1, 2, beside, 0))
	}
	believed, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	for _, cores := range []int{0, 1} {
		planner := &static.Planner{Profile: believed, Instances: []static.Instance{
			{Stage: 0, Variants: []serving.VariantID{0}, Slots: 1, Cores: cores}, {
				Stage: 1, Variants: []serving.VariantID{1}, Slots: 1, Cores: cores,
			}}}
		p, err := planner.Plan(context.Background(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		e, err := systems.System{Router: "roundrobin", Batcher: "single"}.Engine(spec, believed, planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		tr, err := truth.NewTable(spec, m, truth.Exact, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var expected, took []time.Duration
		_, err = Run(Config{Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true, Check: true,
			Source: workload.FromSlice([]workload.Arrival{
				{At: 0, Items: 1, Variant: serving.None}, {
					At: 1e6, App: 1, Items: 1, Variant: serving.None,
				}, {At: 1e9, App: 1, Items: 1, Variant: serving.None},
			}),
			Observe: func(_ serving.Time, in []engine.Input, out []engine.Decision) {
				for i := range in {
					if in[i].Kind == engine.BatchDone {
						took = append(took, in[i].Took)
					}
				}
				for i := range out {
					if out[i].Kind == engine.StartBatch {
						expected = append(expected, out[i].Expected)
					}
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{alone, beside, alone} // the first had begun before there was a second
		if cores > 0 {
			want = []time.Duration{alone, alone, alone}
		}
		if !slices.Equal(expected, want) || !slices.Equal(took, want) {
			t.Errorf("with %d cores each: expected %v, took %v, want %v", cores, expected, took, want)
		}
	}
}
