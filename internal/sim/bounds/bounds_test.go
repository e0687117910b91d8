package bounds

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// watched runs a cluster of n machines, whose queries take 10 ms each with a deviation, under a rate, and returns the
// watch and the report, without its bound.
func watched(t *testing.T, n int, deviation time.Duration, rate float64) (*Watch, *report.Report) {
	t.Helper()
	c := simtest.Uniform(n, 0, 10*time.Millisecond, 200*time.Millisecond, 1)
	for k := range c.Measurements.Latency {
		c.Measurements.Latency[k].StdDev = deviation
	}
	machines, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Spec: c.Spec, Profile: c.Profile, Router: route.NewFCFS(), Batcher: batch.Single{},
		Provides: c.Planner.Provides(),
	})
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 20
	load := workload.Spec{Seed: 1, DurationS: seconds, Apps: []workload.AppSpec{{App: "app", Rate: rate}}}
	src, err := load.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch(c.Spec, machines)
	recorder := report.NewRecorder([]report.AppInfo{{Name: "app", BestAccuracy: 0.9}}, report.Options{})
	ran, err := sim.Run(sim.Config{
		Spec: c.Spec, Engine: e, Truth: w.Machines(), Source: w.Source(src), Initial: c.Plan, Warm: true,
		Recorder: recorder,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, recorder.Report(report.Meta{Duration: seconds * time.Second, Usage: &ran.Usage})
}

// One machine of 100/s at 150/s: no more than two thirds can be in time. First come, first served comes close, since
// all queries are equal.
func TestBoundOfOneMachine(t *testing.T) {
	w, r := watched(t, 1, 0, 150)
	b, err := w.Utility(context.Background(), highstest.Solver(t), Fluid())
	if err != nil {
		t.Fatal(err)
	}
	if b.Tolerance != 0 || math.Abs(b.Utility-2.0/3) > 0.02 {
		t.Errorf("the bound is %v with a tolerance of %v", b.Utility, b.Tolerance)
	}
	if u := *r.Overall.Utility; u > b.Utility || u < 0.97*b.Utility {
		t.Errorf("the utility is %v of at most %v", u, b.Utility)
	}
}

// Where batches scatter, the bound is that of the very batches of the run, and chance is left a tolerance.
func TestLuckIsInTheBound(t *testing.T) {
	w, r := watched(t, 1, 8*time.Millisecond, 140)
	b, err := w.Utility(context.Background(), highstest.Solver(t), Fluid())
	if err != nil {
		t.Fatal(err)
	}
	if b.Tolerance <= 0 || b.Tolerance > 0.05 {
		t.Errorf("the tolerance of %d queries is %v", len(w.Queries()), b.Tolerance)
	}
	if u := *r.Overall.Utility; u > b.Utility*(1+b.Tolerance) || u < 0.85*b.Utility {
		t.Errorf("the utility is %v of at most %v", u, b.Utility)
	}
}

// Ten machines at $1/h each, of which the load needs one: the bound on cost is a tenth of what the run costs.
func TestCost(t *testing.T) {
	w, r := watched(t, 10, 0, 90)
	cost, err := w.Cost(context.Background(), highstest.Solver(t), r, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if cost == nil || math.Abs(*cost-0.9) > 0.04 || *r.Overall.CostPerHour < *cost {
		t.Errorf("the cost is %v $/h, at least %v", *r.Overall.CostPerHour, cost)
	}
}

// Types with a price are rented unless they are owned. Without a rented type there is no bound on money.
func TestOwnedTypesAreNotRented(t *testing.T) {
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{
		{PricePerHour: 1}, {PricePerHour: 1, Tenure: serving.Owned}, {PricePerHour: 1, Tenure: serving.Rented},
		{Tenure: serving.Rented}, {PricePerHour: 1, Part: true},
	}}
	if got := Rented(spec); got == nil || !slices.Equal(got.Rented, []bool{true, false, true, false, false}) {
		t.Errorf("%+v", got)
	}
	spec.DeviceTypes = spec.DeviceTypes[1:2]
	if got := Rented(spec); got != nil {
		t.Errorf("owned machines alone: %+v", got)
	}
}

// The items that queries bring to stages are what the engine has them bring, on random graphs.
func TestItemsAreThoseOfTheEngine(t *testing.T) {
	compared := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := simtest.Random(rng)
		machines, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(engine.Config{
			Spec: c.Spec, Profile: c.Profile, Router: route.NewRoundRobin(), Batcher: batch.Single{},
			Provides: c.Planner.Provides(),
		})
		if err != nil {
			t.Fatal(err)
		}
		even := truth.NewEven(c.Spec)
		apps, brings := make(map[serving.QueryID]serving.AppID), make(map[serving.QueryID][]float64)
		_, err = sim.Run(sim.Config{
			Spec: c.Spec, Engine: e, Truth: machines, Initial: c.Plan, Warm: true, Planner: c.Planner,
			Source: workload.FromSlice(c.Load(rng, 60)), Limit: serving.Time(time.Minute),
			Observe: func(_ serving.Time, in []engine.Input, out []engine.Decision) {
				for i := range in {
					if q := in[i].Query; in[i].Kind == engine.QueryArrived {
						apps[q.ID], brings[q.ID] = q.App, even.Bring(q.App, q.Items)
					}
				}
				for i := range out {
					d := &out[i]
					if d.Kind != engine.EndQuery || d.Outcome != serving.Served {
						continue
					}
					want := brings[d.Query]
					for _, x := range d.Stages {
						for k, s := range c.Spec.Apps[apps[d.Query]].Stages {
							if s == x.Stage {
								compared++
								if float64(x.Items) != want[k] {
									t.Errorf("seed %d: %d items at stage %d, want %v", seed, x.Items, s, want[k])
								}
							}
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if compared < 100 {
		t.Errorf("only %d stages were compared", compared)
	}
}
