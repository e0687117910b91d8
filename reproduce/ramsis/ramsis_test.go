package ramsis

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/systems"
)

// What is carried is what was published: 9 and 5 models, and a trace of 300 s that begins again after 261.
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
	l, err := trace()
	if err != nil {
		t.Fatal(err)
	}
	// 26 steps of 10 s and one second of the last; then 10, 10, 10 and 9 s of the first four.
	if want := 722_765 + 10*(1850+1617+1880) + 9*1729.0; math.Abs(l.expected()-want) > 1e-6 {
		t.Errorf("%v queries, want %v", l.expected(), want)
	}
}

func testWorld(t testing.TB, s setup, system string, l *load) *job {
	t.Helper()
	w, err := world(nil, s)
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
	l, err := constant("constant", rate)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTmpConstants(t *testing.T) {
	for _, name := range []string{"jellyfish+", "modelswitching", "greedy"} {
		for rate := 400.0; rate <= 4000; rate += 400 {
			j := testWorld(t, setup{task: "image", slo: 150 * time.Millisecond, workers: 60}, name, testLoad(t, rate))
			begun := time.Now()
			r, err := j.run(context.Background(), 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %v: %.2f %.3f %% %v", name, rate, r.accuracy, r.violations, time.Since(begun))
		}
	}
}

// BenchmarkTrace simulates the production trace on 100 workers: ns/query is what the simulator costs, s/554395 what that comes
// to for as many queries as the paper counts in it.
func BenchmarkTrace(b *testing.B) {
	l, err := trace()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"jellyfish+", "greedy", "ramsis", "pool"} {
		if _, err := systems.Get(name); err != nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			j := testWorld(b, setup{task: "image", slo: 150 * time.Millisecond, workers: 100}, name, l)
			if _, err := j.plan(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			queries := int64(0)
			for range b.N {
				r, err := j.run(context.Background(), 1)
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
