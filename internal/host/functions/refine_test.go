package functions

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A function that asks for it is deployed with predicted latencies, and measured once nothing is served for a while;
// both are in its status, and survive the server. A model that cannot be predicted is measured at once.
func TestPredictedThenMeasured(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	r := newRig(t, dir)
	predicted := usual
	predicted.Profile = Predict
	path := model(t, batched("one"))
	s, err := r.c.Deploy(ctx, "f", path, predicted)
	if err != nil || s.Profile != ByPrediction || s.PredictionError != nil || r.asked != 0 || r.quick.asked != 1 {
		t.Fatalf("%+v, %v, measured %d times", s, err, r.asked)
	}
	v := r.open[0].Variant
	believed := func() time.Duration { return r.grown[len(r.grown)-1].Profile.Latency(v, 0, 2, 1) }
	if d := believed(); d != 4*time.Millisecond {
		t.Errorf("two items are predicted to take %v", d)
	}
	if s, err = r.c.Deploy(ctx, "g", path, usual); err != nil || s.Profile != ByMeasuring || r.asked != 1 ||
		r.quick.asked != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	r.quick.err = errors.New("an operator that cannot be run by itself")
	if s, err = r.c.Deploy(ctx, "h", path, predicted); err != nil || s.Profile != ByMeasuring || r.asked != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if events, err := r.m.Logs("h", 0, 10); err != nil || !slices.ContainsFunc(events, func(e Event) bool {
		return e.Kind == "measure"
	}) {
		t.Errorf("%+v, %v: nothing says why it was measured", events, err)
	}
	r.quick.err = nil
	refining := func(quiet func() bool, during func()) {
		synctest.Test(t, func(*testing.T) {
			ctx, stop := context.WithCancel(context.Background())
			go WhenIdle(ctx, quiet, r.m.Refinement)
			during()
			stop()
			synctest.Wait()
		})
	}
	var quiet atomic.Bool
	refining(quiet.Load, func() {
		time.Sleep(time.Minute)
		if r.asked != 2 {
			t.Error("it was measured while something was served")
		}
		quiet.Store(true)
		time.Sleep(10 * time.Second)
	})
	check := func(m *Manager) {
		s, err := m.Get("f")
		if err != nil || s.Profile != ByMeasuring || s.PredictionError == nil ||
			math.Abs(*s.PredictionError-1.0/3) > 1e-9 || s.Version != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	}
	check(r.m)
	if d := believed(); d != 6*time.Millisecond || r.asked != 3 {
		t.Errorf("two items are believed to take %v, measured %d times", d, r.asked)
	}

	// What was measured does not fit: the prediction stays, and is not looked at again and again.
	if _, err = r.c.Deploy(ctx, "late", path, predicted); err != nil {
		t.Fatal(err)
	}
	r.refuses = errors.New("too slow for it")
	refining(quiet.Load, func() { time.Sleep(time.Minute) })
	r.refuses = nil
	if s, err = r.m.Get("late"); err != nil || s.Profile != ByPrediction || s.PredictionError == nil || r.asked != 4 {
		t.Errorf("%+v, %v, measured %d times", s, err, r.asked)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	check(newRig(t, dir).m)
}
