package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// twoApps are two apps of one variant each on one worker, with service times in the given proportion to a millisecond.
// Nothing is dropped. Slots is how many batches of each may run at once.
func twoApps(t *testing.T, times [2]float64, slots int) (*serving.Spec, serving.Measurements, *plan.Plan,
	*profile.Table) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 4}}, Workers: []serving.Worker{{Name: "w"}},
	}
	var m serving.Measurements
	var placed []static.Instance
	for a := range 2 {
		s, v := serving.StageID(a), serving.VariantID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprint(a), SLO: serving.SLO{Latency: time.Hour, Percentile: 99}, Weight: 1, QueueLimit: 1e6,
			Late: serving.ServeLate, Stages: []serving.StageID{s},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: "s", App: serving.AppID(a), Variants: []serving.VariantID{v},
		})
		spec.Variants = append(spec.Variants, serving.Variant{Name: fmt.Sprint(a), Stage: s, MaxBatch: 1})
		m.Latency = append(m.Latency, simtest.Point(v, 0, 1, 1, time.Duration(times[a]*1e6), 0))
		placed = append(placed, static.Instance{Stage: s, Variants: []serving.VariantID{v}, Slots: slots})
	}
	believed, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&static.Planner{Profile: believed, Instances: placed}).Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return spec, m, p, believed
}

// meanTimes runs two apps that share a worker under Poisson arrivals with the given loads and returns the mean time of
// each app's queries from arrival to answer, in ms.
func meanTimes(t *testing.T, times, loads [2]float64, slots int, noise truth.Noise, n int) (out [2]float64) {
	t.Helper()
	spec, m, p, believed := twoApps(t, times, slots)
	e, err := engine.New(engine.Config{
		Spec: spec, Profile: believed, Router: route.NewShortestQueue(), Batcher: batch.Single{},
		Provides: plan.Limits | plan.Shares,
	})
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	tr, err := truth.NewTable(spec, m, noise, workload.Rand(seed, "service"))
	if err != nil {
		t.Fatal(err)
	}
	load := workload.Spec{Seed: seed}
	rate := loads[0]/times[0] + loads[1]/times[1] // of both, per ms
	load.DurationS = float64(n) / rate / 1e3
	for a := range 2 {
		load.Apps = append(load.Apps, workload.AppSpec{App: fmt.Sprint(a), Rate: loads[a] / times[a] * 1e3})
	}
	src, err := load.Source(func(name string) (serving.AppID, error) { return serving.AppID(name[0] - '0'), nil })
	if err != nil {
		t.Fatal(err)
	}
	var sum, count [2]float64
	_, err = Run(Config{
		Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true, Source: src,
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for i := range out {
				if d := &out[i]; d.Kind == engine.EndQuery {
					sum[d.App] += now.Sub(d.Arrived).Seconds() * 1e3
					count[d.App]++
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return [2]float64{sum[0] / count[0], sum[1] / count[1]}
}

// Batches that run at once where nothing was measured of several share the machine's time. With slots for all that come
// this is M/G/1 under processor sharing: a query of an app with service time s takes s/(1 - load), whatever the
// distribution of service times (L. Kleinrock, Queueing Systems II, 1976, eq. 4.17).
func TestBatchesAtOnceShareTheMachine(t *testing.T) {
	for _, noise := range []truth.Noise{truth.Exact, truth.Exponential} {
		for _, loads := range [][2]float64{{0.25, 0.25}, {0.2, 0.5}} {
			t.Run(fmt.Sprintf("noise %d, loads %v", noise, loads), func(t *testing.T) {
				t.Parallel()
				times := [2]float64{1, 3}
				got := meanTimes(t, times, loads, 256, noise, longtest.Of(200_000, 400_000))
				for a := range got {
					want := times[a] / (1 - loads[0] - loads[1])
					if math.Abs(got[a]-want) > 0.03*want {
						t.Errorf("app %d: %.4f ms, theory says %.4f (%+.2f %%)", a, got[a], want, 100*(got[a]/want-1))
					}
				}
			})
		}
	}
}

// Instances with one slot take turns, and the one whose query must start soonest is first: with one objective for all,
// the one with the longer service time among queries that came at about the same time. Whatever the order, a machine
// that is never idle while a query waits keeps the mean wait by load: lambda E[S^2] / (2 (1 - load)) (the conservation
// law: L. Kleinrock, Queueing Systems II, 1976, section 3.4).
func TestInstancesTakeTurnsAsTheConservationLawHasIt(t *testing.T) {
	for _, noise := range []truth.Noise{truth.Exact, truth.Exponential} {
		for _, loads := range [][2]float64{{0.25, 0.25}, {0.2, 0.5}} {
			t.Run(fmt.Sprintf("noise %d, loads %v", noise, loads), func(t *testing.T) {
				t.Parallel()
				times := [2]float64{1, 3}
				got := meanTimes(t, times, loads, 1, noise, longtest.Of(250_000, 500_000))
				second := 1.0 // E[S^2] / E[S]^2 of each kind
				if noise == truth.Exponential {
					second = 2
				}
				want := second * (loads[0]*times[0] + loads[1]*times[1]) / (2 * (1 - loads[0] - loads[1]))
				mean := 0.0
				for a := range got {
					mean += loads[a] / (loads[0] + loads[1]) * (got[a] - times[a])
				}
				if math.Abs(mean-want) > 0.03*want {
					t.Errorf("waits of %.4f ms in the mean by load, theory says %.4f (%+.2f %%)", mean, want,
						100*(mean/want-1))
				}
				if got[0]-times[0] < got[1]-times[1] {
					t.Errorf("the app whose queries may start later waits for less: %v", got)
				}
			})
		}
	}
}
