package sim

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A dispatcher that dies takes with it what it had. What comes before its successor is served after, late; all else is
// as without it.
func TestTakeover(t *testing.T) {
	c := simtest.Uniform(1, 10*time.Millisecond, time.Millisecond, 200*time.Millisecond, 8)
	c.Spec.Apps[0].Late = serving.ServeLate
	system := systems.System{Router: "priced", Batcher: "greedy", Scaler: "fixed"}
	run := func(takeovers ...Takeover) report.Summary {
		t.Helper()
		e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
		if err != nil {
			t.Fatal(err)
		}
		var arrivals []workload.Arrival
		for at := range 100 {
			arrivals = append(arrivals, workload.Arrival{At: serving.Time(time.Duration(at) * 100 * time.Millisecond),
				Items: 1, Variant: serving.None, Sample: -1})
		}
		recorder := report.NewRecorder([]report.AppInfo{{Name: "app", SLO: c.Spec.Apps[0].SLO}}, report.Options{})
		_, err = Run(Config{Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true, Check: true,
			Source: workload.FromSlice(arrivals), Takeovers: takeovers, Recorder: recorder})
		if err != nil {
			t.Fatal(err)
		}
		return recorder.Report(report.Meta{Duration: 10 * time.Second}).Overall
	}
	if x := run(); x.InTime != 100 {
		t.Errorf("without a takeover %d of 100 are in time", x.InTime)
	}
	// The query of 5 s is at the dispatcher that dies 3 ms after. Those of 5.1 to 6.8 s miss their objective.
	at := serving.Time(5003 * time.Millisecond)
	if x := run(Takeover{at, at.Add(2 * time.Second)}); x.Failed != 1 || x.Late != 18 || x.InTime != 81 {
		t.Errorf("%d failed, %d late, %d in time", x.Failed, x.Late, x.InTime)
	}
}
