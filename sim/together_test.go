package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Two models on one worker, and a batch of each at once. With two slots both run at once: the second is believed to
// take what two at once take, and each advances at that speed while the other runs. With one slot they take turns. With
// cores of their own each takes what it takes alone.
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
	// At 1 ms the first has done a tenth; both need 16 ms for a whole batch until it ends at 1 + 0.9 * 16 ms, and the
	// second ends 1 ms later.
	const shared = 15400 * time.Microsecond
	for _, c := range []struct {
		cores, slots   int
		expected, took []time.Duration
		second         serving.Time // when it starts
	}{
		{0, 2, []time.Duration{alone, beside, alone}, []time.Duration{shared, shared, alone}, 1e6},
		{0, 1, []time.Duration{alone, alone, alone}, []time.Duration{alone, alone, alone}, 10e6},
		{1, 1, []time.Duration{alone, alone, alone}, []time.Duration{alone, alone, alone}, 1e6},
	} {
		planner := &static.Planner{Profile: believed, Instances: []static.Instance{
			{Stage: 0, Variants: []serving.VariantID{0}, Slots: c.slots, Cores: c.cores}, {
				Stage: 1, Variants: []serving.VariantID{1}, Slots: c.slots, Cores: c.cores,
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
		var starts []serving.Time
		_, err = Run(Config{Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true, Check: true,
			Source: workload.FromSlice([]workload.Arrival{
				{At: 0, Items: 1, Variant: serving.None}, {
					At: 1e6, App: 1, Items: 1, Variant: serving.None,
				}, {At: 1e9, App: 1, Items: 1, Variant: serving.None},
			}),
			Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
				for i := range in {
					if in[i].Kind == engine.BatchDone {
						took = append(took, in[i].Took)
					}
				}
				for i := range out {
					if out[i].Kind == engine.StartBatch {
						expected, starts = append(expected, out[i].Expected), append(starts, now)
					}
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(expected, c.expected) || !slices.Equal(took, c.took) || starts[1] != c.second {
			t.Errorf("with %d cores and %d slots each: expected %v, took %v, the second started at %v; want %+v",
				c.cores, c.slots, expected, took, starts[1], c)
		}
	}
}

// A worker that does 100 queries/s, and two apps that bring it 90 queries/s each: no system serves more than 100/s.
func TestNoSystemServesMoreThanTheMachineDoes(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 4, PricePerHour: 1}},
		Workers:     []serving.Worker{{Name: "w"}},
	}
	var m serving.Measurements
	var arrivals []workload.Arrival
	for a := range 2 {
		spec.Apps = append(spec.Apps, serving.App{
			Name: string(rune('a' + a)), SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Weight: 1,
			QueueLimit: 1000, Stages: []serving.StageID{serving.StageID(a)},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: "s", App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(a)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: string(rune('a' + a)), Stage: serving.StageID(a), MaxBatch: 1, Accuracy: 0.9,
		})
		m.Latency = append(m.Latency, simtest.Point(serving.VariantID(a), 0, 1, 1, 10*time.Millisecond, 0))
	}
	const seconds = 10
	for k := range 90 * seconds {
		for a := range 2 {
			arrivals = append(arrivals, workload.Arrival{
				At: serving.Time(k) * 1e9 / 90, App: serving.AppID(a), Items: 1, Variant: serving.None,
			})
		}
	}
	believed, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range systems.All() {
		planner := &static.Planner{Profile: believed, Instances: []static.Instance{
			{Stage: 0, Variants: []serving.VariantID{0}}, {Stage: 1, Variants: []serving.VariantID{1}},
		}}
		p, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		s.Scaler = "fixed"
		e, err := s.Engine(spec, believed, ^plan.Sections(0))
		if err != nil {
			t.Logf("%s: %v", s.Name, err)
			continue
		}
		tr, err := truth.NewTable(spec, m, truth.Exact, nil)
		if err != nil {
			t.Fatal(err)
		}
		served := [2]int{}
		_, err = Run(Config{
			Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true, Check: true, Source: workload.FromSlice(arrivals),
			Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
				for i := range out {
					if d := &out[i]; d.Kind == engine.EndQuery && d.Outcome == serving.Served && now <= d.Deadline {
						served[d.App]++
					}
				}
			},
		})
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if n := served[0] + served[1]; n > 100*seconds+20 || n < 50*seconds {
			t.Errorf("%s served %v of %d queries, a machine does %d", s.Name, served, len(arrivals), 100*seconds)
		}
	}
}
