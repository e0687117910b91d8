package static

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

func testSpec() *serving.Spec {
	return &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", PricePerHour: 2}},
		Workers:     []serving.Worker{{Name: "a"}, {Name: "b"}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{
					Latency: 100 * time.Millisecond, Percentile: 99,
				}, Weight: 1, QueueLimit: 1, Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 64}},
	}
}

func TestPlan(t *testing.T) {
	p := &Planner{Profile: profile.Constant{
		Base: 10 * time.Millisecond, PerItem: 2 * time.Millisecond,
	}, Instances: []Instance{
		{Worker: 0, Variants: []serving.VariantID{0}}, {Worker: 1, Variants: []serving.VariantID{0}, Limit: 5}}}
	got, err := p.Plan(t.Context(), plan.Request{Spec: testSpec()})
	if err != nil {
		t.Fatal(err)
	}
	// Proteus §4: the largest batch with 10 + 2b <= 50 ms is 20; it carries 20 in 50 ms, 400/s. Five take 20 ms: 250/s.
	if l := got.Instances[0].Variants[0].Limit; l != 20 {
		t.Errorf("batch limit %d, want 20", l)
	}
	if h := got.Instances[0].BatchTimeout; h != 50*time.Millisecond {
		t.Errorf("time-out %v, want the objective less the run time, 50 ms", h)
	}
	if s := got.Instances[0].Share; math.Abs(s-400.0/650) > 1e-9 {
		t.Errorf("share %v, want 400/650", s)
	}
	if f := got.Forecast; math.Abs(f.Throughput-650) > 1e-6 || f.CostPerHour != 4 || math.Abs(f.Accuracy-0.9) > 1e-9 {
		t.Errorf("forecast %+v", f)
	}
	p.Profile = profile.Constant{Base: 200 * time.Millisecond}
	if _, err := p.Plan(t.Context(), plan.Request{Spec: testSpec()}); err == nil ||
		!strings.Contains(err.Error(), `variant "v" takes 200ms`) {
		t.Errorf("a variant that can never be in time: %v", err)
	}
	p.Instances[0].Worker = 9
	if _, err := p.Plan(t.Context(), plan.Request{Spec: testSpec()}); err == nil {
		t.Error("a worker that does not exist was taken")
	}
}
