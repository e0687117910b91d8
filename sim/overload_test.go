package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A machine whose batches of up to 8 take 50 ms and 1 ms for an item carries 137.9 queries/s.
const (
	carries   = 8 / 0.058
	objective = 500 * time.Millisecond
)

// ran is what has become of the queries of a run.
type ran struct {
	inTime, ended int
	meanMs        float64
	meanBatch     float64
}

// serveSingle runs the default system on the machine at a rate.
func serveSingle(t *testing.T, app workload.AppSpec, seconds float64) (out ran) {
	t.Helper()
	c := simtest.Uniform(1, 50*time.Millisecond, time.Millisecond, objective, 8)
	e, p := fixed(t, "sluice", c.Spec, c.Profile, []static.Instance{{Variants: []serving.VariantID{0}}})
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	app.App = "app"
	load := workload.Spec{Seed: 1, DurationS: seconds, Apps: []workload.AppSpec{app}}
	src, err := load.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	batches, items := 0, 0
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: p, Warm: true, Source: src,
		Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
			for i := range decisions {
				switch d := &decisions[i]; d.Kind {
				case engine.EndQuery:
					out.ended++
					if d.Outcome == serving.Served && now <= d.Deadline {
						out.inTime++
						out.meanMs += now.Sub(d.Arrived).Seconds() * 1e3
					}
				case engine.StartBatch:
					batches++
					items += int(d.Items)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out.meanMs /= float64(max(out.inTime, 1))
	out.meanBatch = float64(items) / float64(max(batches, 1))
	return out
}

// However much comes, by chance, evenly or in clumps, the default system keeps 97 % of what the machine can serve.
func TestGoodputHoldsUnderOverload(t *testing.T) {
	for _, process := range []string{"poisson", "uniform", "gamma"} {
		for _, times := range []float64{1.05, 1.5, 2, 4, 10, 20} {
			t.Run(fmt.Sprintf("%s, %v times", process, times), func(t *testing.T) {
				t.Parallel()
				app := workload.AppSpec{Process: process, Rate: times * carries}
				least := 0.97
				if process == "gamma" {
					app.Shape = 0.05
					if times < 2 {
						least = 0.9 // between clumps the machine is idle
					}
				}
				const seconds = 60
				got := serveSingle(t, app, seconds)
				if share := float64(got.inTime) / seconds / carries; share < least || share > 1.02 {
					t.Errorf("%.1f/s in time, %.3f of the capacity", float64(got.inTime)/seconds, share)
				}
			})
		}
	}
}

// On a machine that is mostly idle nothing waits for a batch to fill.
func TestALoneQueryIsServedAtOnce(t *testing.T) {
	got := serveSingle(t, workload.AppSpec{Process: "uniform", Rate: 10}, 60)
	if got.inTime != got.ended || got.meanMs > 51.1 || got.meanBatch != 1 {
		t.Errorf("%d of %d in time, mean %.1f ms in batches of %.2f, want all in the 51 ms that one takes", got.inTime,
			got.ended, got.meanMs, got.meanBatch)
	}
}
