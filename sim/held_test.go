package sim

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
)

// A machine whose batcher held a query back until its client went away is free again: the next query is served.
func TestAMachineIsFreeAfterAHeldQueryHasGone(t *testing.T) {
	c := simtest.Uniform(1, 10*time.Millisecond, time.Millisecond, 200*time.Millisecond, 8)
	system := systems.System{Router: "priced", Batcher: "filltimeout", Scaler: "fixed"}
	e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[serving.QueryID]serving.Outcome{}
	at := func(d time.Duration) workload.Arrival {
		return workload.Arrival{At: serving.Time(d), Items: 1, Variant: serving.None, Sample: -1}
	}
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true,
		Source:  workload.FromSlice([]workload.Arrival{at(0), at(time.Millisecond), at(time.Second)}),
		Cancels: []Cancel{{At: serving.Time(2 * time.Millisecond), Query: 1}},
		Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				if d := &out[k]; d.Kind == engine.EndQuery {
					outcomes[d.Query] = d.Outcome
				}
			}
		},
	})
	if err != nil || outcomes[1] != serving.Cancelled || outcomes[3] != serving.Served {
		t.Errorf("%v, %v: want the first cancelled and the last served", outcomes, err)
	}
}
