package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// twoTypes is two machines that answer everything in time and six that answer small queries in time.
func twoTypes(t *testing.T) (*serving.Spec, serving.Measurements, *plan.Plan) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "accelerator", PricePerHour: 0.5}, {Name: "processor", PricePerHour: 0.15},
		},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Weight: 1,
				QueueLimit: 1000, Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 1, MaxBatch: 500}},
	}
	p := &plan.Plan{}
	for w := range serving.WorkerID(8) {
		spec.Workers = append(spec.Workers, serving.Worker{DeviceType: serving.DeviceTypeID(min(w/2, 1))})
		p.Instances = append(p.Instances, plan.Instance{
			Worker: w, Slots: 1, Share: 0.125, Variants: []plan.Variant{{Limit: 500}},
		})
	}
	var m serving.Measurements
	for _, items := range []int{1, 10, 50, 100, 200, 350, 500} {
		for d, of := range []time.Duration{
			10*time.Millisecond + time.Duration(items)*100*time.Microsecond,
			5*time.Millisecond + time.Duration(items)*800*time.Microsecond,
		} {
			m.Latency = append(m.Latency, simtest.Point(0, serving.DeviceTypeID(d), items, 1, of, of/50))
		}
	}
	return spec, m, p
}

// The cost of learning from nothing, against the same system that knows all latencies: a few of the first hundred
// queries, and none later.
func TestLearningCostsLittle(t *testing.T) {
	const queries, first = 10000, 200
	var lost [2][2]int // known, learned; among the first queries and the rest
	const seeds = 5
	for seed := uint64(1); seed <= seeds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		var load []workload.Arrival
		at := serving.Time(0)
		for range queries {
			at += serving.Time(rng.ExpFloat64() * 1e9 / 160)
			load = append(load, workload.Arrival{
				At: at, Items: int32(min(max(math.Exp(3.5+1.1*rng.NormFloat64()), 1), 500)), Variant: serving.None,
				Sample: -1,
			})
		}
		for k, learns := range []bool{false, true} {
			spec, m, p := twoTypes(t)
			system := systems.System{Name: "test", Router: "earliestfinish", Batcher: "single"}
			system.Options.Learn = learns
			var known profile.Profile
			if !learns {
				var err error
				if known, err = profile.NewTable(spec, m, profile.Mean); err != nil {
					t.Fatal(err)
				}
			}
			e, err := system.Engine(spec, known, 0)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := truth.NewTable(spec, m, truth.Lognormal, workload.Rand(seed, "service"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Run(Config{Spec: spec, Engine: e, Truth: tr, Initial: p, Warm: true,
				Source: workload.FromSlice(load), Check: seed == 1,
				Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
					for i := range out {
						if d := &out[i]; d.Kind == engine.EndQuery && (d.Outcome != serving.Served || d.Late) {
							lost[k][min(int(d.Query)/first, 1)]++
						}
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	share := func(k, of, n int) float64 { return 100 * float64(lost[k][of]) / float64(seeds*n) }
	t.Logf("late or dropped: of the first %d queries %.1f %% when all is known, %.1f %% when it is learned from "+
		"nothing; of the others %.2f and %.2f %%",
		first, share(0, 0, first), share(1, 0, first), share(0, 1, queries-first), share(1, 1, queries-first))
	if share(1, 0, first) > share(0, 0, first)+15 {
		t.Errorf("learning costs %.1f %% of the first %d queries", share(1, 0, first)-share(0, 0, first), first)
	}
	if share(1, 1, queries-first) > share(0, 1, queries-first)+0.5 {
		t.Errorf("of the later queries %.2f %% are late where latency is learned, %.2f %% where it is known",
			share(1, 1, queries-first), share(0, 1, queries-first))
	}
}

// asked is a planner that records its answers.
type asked struct {
	plan.Planner
	plans []*plan.Plan
	times []serving.Time
	now   *serving.Time
}

func (a *asked) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p, err := a.Planner.Plan(ctx, r)
	if err == nil {
		a.plans, a.times = append(a.plans, p), append(a.times, *a.now)
	}
	return p, err
}

// pool counts the machines of a plan by type.
func pool(spec *serving.Spec, p *plan.Plan) [2]int {
	var out [2]int
	for _, i := range p.Instances {
		out[spec.Workers[i.Worker].DeviceType]++
	}
	return out
}

// Renting without any knowledge: first some machines of each type, to measure them. Once latencies and sizes are known,
// the pool that full knowledge would choose. Another one when queries become larger, and when prices change.
func TestRentingFromNothing(t *testing.T) {
	spec, m, _ := twoTypes(t)
	spec.Workers = nil
	for w := range 20 {
		spec.Workers = append(spec.Workers, serving.Worker{DeviceType: serving.DeviceTypeID(w / 10)})
	}
	table, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	system := systems.System{
		Name: "test", Planner: "kairos", Router: "earliestfinish", Batcher: "single", Scaler: "mixshift",
	}
	system.Options.Learn, system.Options.Renting.Budget = true, 2
	planner := func(known profile.Profile) plan.Planner {
		p, err := system.NewPlanner(systems.PlannerInputs{Profile: known})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var now serving.Time
	live := &asked{Planner: planner(profile.NewLearned(spec, nil)), now: &now}
	first, err := live.Plan(t.Context(), plan.Request{Spec: spec, Beliefs: profile.NewLearned(spec, nil).Frozen()})
	if err != nil {
		t.Fatal(err)
	}
	const small, large, cheap = 60e9, 120e9, 150e9 // until when queries are small, are large, and prices hold
	rng := rand.New(rand.NewPCG(1, 2))
	var load []workload.Arrival
	sizes := [2]map[int32]int{{}, {}}
	for at := serving.Time(0); at < cheap+30e9; at += serving.Time(rng.ExpFloat64() * 1e9 / 120) {
		mean, k := 3.0, 0
		if at > small {
			mean, k = 4.6, 1
		}
		items := int32(min(max(math.Exp(mean+0.8*rng.NormFloat64()), 1), 500))
		sizes[k][items]++
		load = append(load, workload.Arrival{At: at, Items: items, Variant: serving.None, Sample: -1})
	}
	e, err := system.Engine(spec, nil, live.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(spec, m, truth.Lognormal, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	prices := []float64{0.5, 1}
	_, err = Run(Config{Spec: spec, Engine: e, Truth: tr, Initial: first, Warm: true, Source: workload.FromSlice(load),
		Check: true, Planner: live, PlanDelay: 100 * time.Millisecond,
		Prices:  []PriceChange{{At: cheap, DeviceType: 1, Price: prices[1]}},
		Observe: func(at serving.Time, _ []engine.Input, _ []engine.Decision) { now = at }})
	if err != nil {
		t.Fatal(err)
	}
	if p := pool(spec, first); p[0] == 0 || p[1] == 0 {
		t.Errorf("with nothing known the pool is %v", p)
	}
	for k, c := range []struct {
		until  serving.Time
		mix    int
		prices []float64
	}{{small, 0, nil}, {cheap, 1, nil}, {cheap + 30e9, 1, prices}} {
		mix := serving.CountMix(sizes[c.mix])
		want, err := planner(table).Plan(t.Context(), plan.Request{
			Spec: spec, Rates: []float64{120}, Mixes: []serving.Mix{mix}, Prices: c.prices,
		})
		if err != nil {
			t.Fatal(err)
		}
		got := first
		for n, at := range live.times {
			if at < c.until {
				got = live.plans[n]
			}
		}
		a, b := pool(spec, got), pool(spec, want)
		t.Logf("phase %d: pool %v, of who knows all %v", k, a, b)
		market, err := kairos.NewMarket(table, spec, 0, &mix, c.prices, spec.Apps[0].SLO.Latency)
		if err != nil {
			t.Fatal(err)
		}
		fluid, err := kairos.NewFluid(market, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		if x, y := fluid.Of(a[:]), fluid.Of(b[:]); x < 0.95*y {
			t.Errorf("phase %d: pool %v can carry %.0f/s, that of who knows all, %v, %.0f/s", k, a, x, b, y)
		}
		if cost := market.Cost(a[:]); cost > 2*(1+1e-9) {
			t.Errorf("phase %d: pool %v costs %v $/h, the budget is 2", k, a, cost)
		}
	}
	t.Logf("%d plans, asked for at %v", len(live.plans), live.times)
}
