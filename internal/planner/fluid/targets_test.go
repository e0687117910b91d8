package fluid

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// The accurate variant is too slow for the objective: no machines are bought for what a target asks of it.
func TestTargetsBeyondReachBuyNothing(t *testing.T) {
	w := &world{}
	w.machines(20, 1, 1, 0)
	app := w.app(time.Second, 200)
	w.variant(2*ms, 0, 0.5, 0)
	w.variant(2*time.Second, 0, 1, 0)
	without := w.used(w.plan(t, Planner{}, nil))[0]
	app.AccuracyTarget = 0.9
	if got := w.used(w.plan(t, Planner{}, nil))[0]; got != without || got == 20 {
		t.Errorf("%d machines with a target beyond reach, want the %d without one", got, without)
	}
}

// Trials serve all in time, and more accurately the more machines there are: the cheapest that keep the target win and,
// where not even all of them do, the cheapest that come as near.
func TestTrialsKeepTargets(t *testing.T) {
	for _, c := range []struct {
		name     string
		accurate func(machines int) float64
		want     int
	}{
		{"kept by six", func(n int) float64 { return min(0.6+0.05*float64(n), 1) }, 6},
		{"kept by all", func(int) float64 { return 0.95 }, 1},
		{"kept by none", func(n int) float64 { return min(0.5+0.1*float64(n), 0.8) }, 3},
	} {
		w := &world{}
		w.machines(20, 1, 1, 0)
		w.app(time.Second, 20).AccuracyTarget = 0.9
		w.variant(2*ms, 0, 0.5, 0)
		w.variant(20*ms, 0, 1, 0)
		w.Variants[0].MaxBatch, w.Variants[1].MaxBatch = 1, 1
		try := func(_ context.Context, _ *plan.Request, p *plan.Plan) (plan.Tried, error) {
			n := w.used(p)[0]
			if n == 0 {
				return plan.Tried{Queries: 1000, Violation: 1, Late: []float64{1}, Accurate: []float64{0}}, nil
			}
			a := c.accurate(n)
			return plan.Tried{Queries: 1000, Accuracy: a, Utility: a, Late: []float64{0}, Accurate: []float64{a}}, nil
		}
		if got := w.used(w.plan(t, Planner{Try: try, Options: Options{Trials: 40}}, nil))[0]; got != c.want {
			t.Errorf("%s: %d machines, want %d", c.name, got, c.want)
		}
	}
}

// What a candidate is short of counts against it, and only of targets.
func TestShort(t *testing.T) {
	w := &world{}
	w.machines(2, 1, 0, 0)
	w.app(time.Second, 20).AccuracyTarget = 0.9
	w.variant(2*ms, 0, 1, 0)
	w.app(time.Second, 20)
	w.variant(2*ms, 0, 1, 0)
	m, err := (&Planner{Profile: w}).read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
	if err != nil {
		t.Fatal(err)
	}
	got := m.short(&candidate{tried: &plan.Tried{Late: []float64{0, 0}, Accurate: []float64{0.7, 0.5}}})
	if math.Abs(got[0]-0.2) > 1e-9 || got[1] != 0 {
		t.Errorf("short of %v, want 0.2 and nothing without a target", got)
	}
}
