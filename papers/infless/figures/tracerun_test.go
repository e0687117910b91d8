package infless

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// The first ten minutes of the traces are as computed by hand. Arrivals follow a trace: every step has as many as its
// load says, and none come after the end.
func TestFollow(t *testing.T) {
	// 50 calls, then 50, 57; 1, 2, 0, 2
	for trace, want := range map[string][2]float64{"bursty": {50.0 / 57, 3}, "sporadic": {0.5, 4}} {
		load, err := relativeLoad(trace, 4)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(load[0]-want[0]) > 1e-9 || len(load) != 4 || slices.Max(load) != 1 {
			t.Errorf("%s begins with %v of its peak, want %v", trace, load, want[0])
		}
		source, err := arrivalsAlong(load, []float64{300, 100}, stepSpan)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([][2]float64, len(load))
		s := source(1)
		for {
			a, ok := s.Next()
			if !ok {
				break
			}
			counts[a.At/serving.Time(stepSpan)][a.App]++ // out of range beyond the end
		}
		for k := range load {
			for app, peak := range []float64{300, 100} {
				n := load[k] * peak * stepSpan.Seconds()
				if math.Abs(counts[k][app]-n) > 5*math.Sqrt(n) {
					t.Errorf("%s, step %d: %v queries of app %d, want about %v", trace, k, counts[k][app], app, n)
				}
			}
		}
	}
}

// Occupied resources and the times without a ready instance are as stepping through the time by milliseconds gives.
func TestWatcherAgainstMilliseconds(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Cores: 2, Percent: 10}, {Cores: 4}}, Stages: make([]serving.Stage, 1),
	}
	weights := []float64{2*perThread + 10*perPercent, 4 * perThread}
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 12))
		w := newWatcher(spec, 100*time.Millisecond)
		type instance struct {
			device int
			ready  bool
		}
		live := make(map[serving.InstanceID]*instance)
		held, next := make([]float64, 10), serving.InstanceID(1)
		ready, since := 0, serving.Time(0)
		for milli := range 1000 {
			now := serving.Time(milli) * 1e6
			var in []engine.Input
			var out []engine.Decision
			ids := make([]serving.InstanceID, 0, len(live))
			for id := range live {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			before := ready
			switch rng.IntN(20) {
			case 0:
				d := rng.IntN(2)
				live[next] = &instance{device: d}
				out = append(out, engine.Decision{
					Kind: engine.LaunchInstance, Instance: next,
					Launch: &engine.Launch{DeviceType: serving.DeviceTypeID(d)},
				})
				next++
			case 1:
				if len(ids) > 0 {
					id := ids[rng.IntN(len(ids))]
					if !live[id].ready {
						live[id].ready = true
						ready++
					}
					in = append(in, engine.Input{
						Kind: engine.InstanceChanged, Change: engine.VariantReady, Instance: id,
					})
				}
			case 2:
				if len(ids) > 0 {
					id := ids[rng.IntN(len(ids))]
					if live[id].ready {
						ready--
					}
					delete(live, id)
					out = append(out, engine.Decision{Kind: engine.StopInstance, Instance: id})
				}
			}
			w.onStep(now, in, out)
			if before == 0 && ready > 0 {
				// one that arrived while nothing was ready, and one before
				came := since + serving.Time(rng.Int64N(int64(now-since)+1))
				if came < now {
					if got := w.startWait(0, came); got != now.Sub(came) {
						t.Fatalf("seed %d, at %v: waited %v from %v on, want %v", seed, now, got, came, now.Sub(came))
					}
				}
				if got := w.startWait(0, now); got != 0 {
					t.Fatalf("seed %d: %v for one that found an instance", seed, got)
				}
			}
			if before > 0 && ready == 0 {
				since = now
			}
			for _, i := range live {
				held[milli/100] += weights[i.device] / 100
			}
		}
		w.onStep(serving.Time(time.Second), nil, nil)
		for k, got := range w.meansBySteps(10) {
			if math.Abs(got-held[k]) > 1e-6*max(held[k], 1) {
				t.Fatalf("seed %d, step %d: %v occupied, want %v", seed, k, got, held[k])
			}
		}
	}
}

// No system serves more than its linear program allows, and a result does not depend on what else runs.
func TestFollowedIsWithinItsBound(t *testing.T) {
	for _, a := range []application{{"OSVT", osvt, 60}, {"Q&A", qa, 100}} {
		for _, e := range contenders {
			x, err := simulate(context.Background(), e, a, "bursty", 4, 1)
			if err != nil {
				t.Fatal(err)
			}
			if x.offered == 0 || x.inTime > x.offered || x.efficiency() > x.bound || x.bound == 0 {
				t.Errorf("%s by %s: %v of %v in time, %v for what is occupied of %v", a.name, e.name, x.inTime,
					x.offered, x.efficiency(), x.bound)
			}
			sum := 0.0
			for _, h := range x.occupied {
				sum += h * stepSpan.Seconds()
			}
			if sum > x.resources()*(1+1e-9) || sum < 0.9*x.resources() {
				t.Errorf("%s by %s: %v occupied by step, %v in all", a.name, e.name, sum, x.resources())
			}
			y, err := simulate(context.Background(), e, a, "bursty", 4, 1)
			if err != nil || !reflect.DeepEqual(x, y) {
				t.Errorf("%s by %s comes out differently a second time: %v", a.name, e.name, err)
			}
		}
	}
}

// Every figure along the traces, with few steps, gives rows that are numbers and charts that can be drawn.
func TestFiguresAlongTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	names := []string{"12a", "12b", "14", "15a", "15b", "T4"}
	run := newRunner(reproduce.Request{Figures: names, Seeds: 2, Parallel: 2})
	run.steps = longtest.Of(3, 6)
	o, err := study.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for _, r := range o.Rows {
		rows[r.Figure]++
		if math.IsNaN(r.Measured) || math.IsInf(r.Measured, 0) || r.Seeds != 2 || r.Low > r.Measured ||
			r.High < r.Measured {
			t.Errorf("%+v", r)
		}
	}
	for _, name := range names {
		if rows[name] == 0 {
			t.Errorf("figure %s has no row", name)
		}
	}
	if len(o.Charts) != len(names)-1 {
		t.Errorf("%d charts", len(o.Charts))
	}
	for _, c := range o.Charts {
		if err := c.PNG(&bytes.Buffer{}); err != nil {
			t.Errorf("chart %s: %v", c.Name, err)
		}
	}
}
