package experiment

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// tried is a plan for one machine that takes 10 ms for a query, and a request at a rate in queries/s.
func tried(t testing.TB, rate float64) (Trials, *plan.Request, *plan.Plan) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 1}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Weight: 1, QueueLimit: 1000,
			Stages: []serving.StageID{0},
		}},
		Stages:   []serving.Stage{{Name: "a", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.8, MaxBatch: 1}},
	}
	believed := profile.Constant{PerItem: 10 * time.Millisecond}
	p := &static.Planner{Profile: believed, Instances: []static.Instance{{Variants: []serving.VariantID{0}}}}
	made, err := p.Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	system, err := systems.Get("fcfs")
	if err != nil {
		t.Fatal(err)
	}
	return Trials{System: system}, &plan.Request{Spec: spec, Rates: []float64{rate}, Beliefs: believed}, made
}

// A machine of 100 queries/s serves 30/s in time, and half of 200/s; the answer is the same every time.
func TestTry(t *testing.T) {
	for _, c := range []struct{ rate, late float64 }{{30, 0}, {200, 0.5}} {
		trials, r, p := tried(t, c.rate)
		got, err := trials.Try(t.Context(), r, p)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Violation-c.late) > 0.02 || got.Deviation > 0.02 || math.Abs(got.Accuracy-0.8) > 1e-9 ||
			math.Abs(got.Utility-(1-got.Violation)) > 1e-9 || got.Late[0] != got.Violation ||
			math.Abs(got.Accurate[0]-0.8) > 1e-9 || math.Abs(float64(got.Queries)-triedQueries) > 300 {
			t.Errorf("at %v/s: %+v, want %v late", c.rate, got, c.late)
		}
		again, err := trials.Try(t.Context(), r, p)
		if err != nil || again.Violation != got.Violation || again.Deviation != got.Deviation {
			t.Errorf("the same again: %+v, %v", again, err)
		}
	}
}

// Clumps make queries late that come in time by chance, and machines are as slow as they are believed to be now.
func TestTryFollowsTheRequest(t *testing.T) {
	trials, r, p := tried(t, 50)
	even, err := trials.Try(t.Context(), r, p)
	if err != nil {
		t.Fatal(err)
	}
	r.Dispersions = []float64{10}
	clumps, err := trials.Try(t.Context(), r, p)
	if err != nil {
		t.Fatal(err)
	}
	if even.Violation > 0.02 || clumps.Violation < 0.1 {
		t.Errorf("late: %v by chance, %v in clumps", even.Violation, clumps.Violation)
	}
	trials, r, p = tried(t, 50)
	r.Beliefs = profile.Constant{PerItem: 40 * time.Millisecond}
	if slow, err := trials.Try(t.Context(), r, p); err != nil || slow.Violation < 0.4 {
		t.Errorf("machines of 25 queries/s are late with %v of 50/s, %v", slow.Violation, err)
	}
}

// Queries of an app without an instance are late, and end the trial all the same.
func TestTryWithoutAnInstance(t *testing.T) {
	trials, r, _ := tried(t, 50)
	got, err := trials.Try(t.Context(), r, &plan.Plan{})
	if err != nil || got.Violation != 1 {
		t.Errorf("late: %v, %v", got.Violation, err)
	}
}

func BenchmarkTry(b *testing.B) {
	trials, r, p := tried(b, 90)
	for b.Loop() {
		if _, err := trials.Try(b.Context(), r, p); err != nil {
			b.Fatal(err)
		}
	}
}
