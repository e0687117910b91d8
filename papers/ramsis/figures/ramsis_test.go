package ramsis

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The embedded data are the published ones: 9 and 5 models, and a trace of 300 s that starts again after 261.
func TestNumbers(t *testing.T) {
	for task, want := range map[string]int{"image": 9, "text": 5} {
		list, err := models(task)
		if err != nil || len(list) != want {
			t.Fatalf("%s: %d models, %v", task, len(list), err)
		}
		for i, m := range list {
			if i > 0 && (m.accuracy <= list[i-1].accuracy || m.took[0] <= list[i-1].took[0]) {
				t.Errorf("%s is not slower and more accurate than %s", m.name, list[i-1].name)
			}
		}
	}
	l, err := newTraceLoad(traceSpan)
	if err != nil {
		t.Fatal(err)
	}
	// The paper counts 554,395 (§7), which is 1,850/s for 300 s. Here it is 26 steps of 10 s and one second of the
	// last; then 10, 10, 10 and 9 s of the first four.
	if want := 722_765 + 10*(1850+1617+1880) + 9*1729.0; math.Abs(l.expected()-want) > 1e-6 {
		t.Errorf("%v queries, want %v", l.expected(), want)
	}
}

func testJob(t testing.TB, s setup, system string, l *load) *job {
	t.Helper()
	w, err := newEnvironment(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	x, err := systems.Get(system)
	if err != nil {
		t.Fatal(err)
	}
	return newJob(w, x, l)
}

func testLoad(t testing.TB, rate float64) *load {
	t.Helper()
	return newConstantLoad("constant", rate, constantSpan)
}

// Jellyfish+ has the accuracy of the authors' code at every constant load they ran. It violates nothing while some
// variant carries the load by its rule.
func TestJellyfishAsPublished(t *testing.T) {
	byLoad, err := readPublished("constant.csv", "load_qps,ramsis_pct,ramsis_violations_pct,jellyfish_pct", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range constantRates {
		r, err := testJob(t, a4Setup, "jellyfish+", testLoad(t, rate)).simulate(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := byLoad[fmt.Sprint(rate)]; ok && math.Abs(r.accuracy-v[2]) > 0.006 {
			t.Errorf("%v queries/s: accuracy %.3f, published %.2f", rate, r.accuracy, v[2])
		}
		if rate < 3300 && r.violations > 0 {
			t.Errorf("%v queries/s: %.3f %% violated", rate, r.violations)
		}
	}
}

// ModelSwitching makes the choices that the authors ship, except with 70 workers at 1,000 queries/s, which chance
// decides.
func TestModelSwitchingAsShipped(t *testing.T) {
	rows, err := data.Records("modelswitching.csv", "workers", "load_qps", "model")
	if err != nil {
		t.Fatal(err)
	}
	plans := make(map[string]*job)
	for n, r := range rows {
		v, err := reproduce.Numbers("modelswitching.csv", n, r[:2])
		if err != nil {
			t.Fatal(err)
		}
		if plans[r[0]] == nil {
			at := a4Setup
			at.workers = int(v[0])
			plans[r[0]] = testJob(t, at, "modelswitching", testTrace(t))
		}
		j := plans[r[0]]
		p, err := j.plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := j.Env.Spec.Variants[p.Policies[0].At(v[1]).Choices[0].Variant].Name
		if got != r[2] && !(v[0] == 70 && v[1] == 1000) {
			t.Errorf("%s workers, %s queries/s: %s, shipped %s", r[0], r[1], got, r[2])
		}
	}
}

// The planner's own simulation of ModelSwitching's choices agrees with the engine.
func TestResponseAgainstEngine(t *testing.T) {
	at := a4Setup
	at.workers = 70
	j := testJob(t, at, "modelswitching", testLoad(t, 600)) // efficientnet_b4, at 90 % of the workers' capacity
	p, err := j.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	promise := p.Policies[0].ByRate[0].Promise
	late := 0.0
	const seeds = 10
	for seed := range uint64(seeds) {
		r, err := j.simulate(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		late += r.violations / seeds
	}
	if 100*promise.Violation < 0.02 || math.Abs(late-100*promise.Violation) > 0.06 {
		t.Errorf("%.3f %% late, the plan says %.3f %%", late, 100*promise.Violation)
	}
}

func testTrace(t testing.TB) *load {
	t.Helper()
	l, err := newTraceLoad(traceSpan)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// BenchmarkTrace simulates the production trace on 100 workers. ns/query is the cost of the simulator, s/554395 that of
// as many queries as the paper counts.
func BenchmarkTrace(b *testing.B) {
	l := testTrace(b)
	for _, name := range []string{"jellyfish+", "greedy", "ramsis", "tidal"} {
		if _, err := systems.Get(name); err != nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			j := testJob(b, setup{task: "image", slo: 150 * ms, workers: 100}, name, l)
			if _, err := j.plan(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			queries := int64(0)
			for range b.N {
				r, err := j.simulate(context.Background(), 1)
				if err != nil {
					b.Fatal(err)
				}
				queries += r.queries
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(queries)
			b.ReportMetric(each, "ns/query")
			b.ReportMetric(each*554_395/1e9, "s/554395")
		})
	}
}

// On a fake clock that stands still while code runs, the data plane gives the results of the simulator.
func TestLiveAsSimulated(t *testing.T) {
	on, err := newLoad("three seconds", 3*time.Second, []workload.Point{{Rate: 2400}}, 2400)
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"ramsis", "jellyfish+"} {
		j := testJob(t, a4Setup, system, on)
		want, err := j.simulate(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			got, err := j.runLive(t.Context(), a4Setup, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got.queries != want.queries || math.Abs(got.accuracy-want.accuracy) > 1e-9 ||
				got.violations != want.violations || got.late != 0 {
				t.Errorf("%s: live %+v, simulated %+v", system, got, want)
			}
		})
	}
}
