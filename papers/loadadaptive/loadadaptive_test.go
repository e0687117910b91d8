package loadadaptive

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const ms = time.Millisecond

// testSpec has K workers of one type, an objective of 100 ms at the 99th percentile, and variants whose batches take
// the given milliseconds; accuracies fall from 0.9 by a tenth, in the order given.
func testSpec(t *testing.T, workers int, took ...[]float64) (*serving.Spec, profile.Profile) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", PricePerHour: 2}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: 100 * ms, Percentile: 99}, Weight: 1, QueueLimit: 1,
				Stages: []serving.StageID{0},
			},
		},
		Stages: []serving.Stage{{Name: "app"}},
	}
	for n := range workers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprint(n)})
	}
	var m serving.Measurements
	for v, list := range took {
		spec.Stages[0].Variants = append(spec.Stages[0].Variants, serving.VariantID(v))
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: fmt.Sprint("v", v), Accuracy: 0.9 - 0.1*float64(v), MaxBatch: len(list),
		})
		for b, x := range list {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				Variant: serving.VariantID(v), Items: b + 1, Concurrency: 1, P95: time.Duration(x * 1e6),
			})
		}
	}
	p, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

// text lists the policies of a plan: rate, variant, limit.
func text(p *plan.Plan) string {
	var out []string
	for _, x := range p.Policies[0].ByRate {
		last := x.Choices[len(x.Choices)-1]
		out = append(out, fmt.Sprintf("%.2f:v%d*%d", x.Rate, last.Variant, last.Queries))
	}
	return strings.Join(out, " ")
}

var (
	slow = []float64{100, 150, 200, 250, 300}
	mid  = []float64{40, 60, 80, 100, 120}
	fast = []float64{20, 30, 40, 50, 100}
)

// Two workers, half the objective is 50 ms. Slow never fits. Mid fits alone: 25/s a worker, so up to 2*25/1.05 =
// 47.62/s. Fast carries 80/s a worker with four, the largest in half the objective: up to 160/1.05 = 152.38/s. Beyond,
// fast takes all five.
func TestJellyfish(t *testing.T) {
	spec, p := testSpec(t, 2, slow, mid, fast)
	got, err := (&Planner{Profile: p, Rule: Jellyfish{}}).Plan(t.Context(),
		plan.Request{Spec: spec, Rates: []float64{60}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "47.62:v1*1 152.38:v2*4 160.00:v2*5"; text(got) != want {
		t.Errorf("got %s, want %s", text(got), want)
	}
	if c := got.Policies[0].At(60).Choice(3, 0); c != (plan.Choice{Variant: 2, Queries: 3}) {
		t.Errorf("three queries at 60/s: %+v, want all of them on v2", c)
	}
	if c := got.Policies[0].At(60).Choice(30, time.Hour); c != (plan.Choice{Variant: 2, Queries: 4}) {
		t.Errorf("thirty queries at 60/s: %+v, want four of them on v2", c)
	}
	if c := got.Policies[0].At(math.Inf(1)).Choice(30, 0).Queries; c != 5 {
		t.Errorf("a load that nobody knows: batches of %d, want those of overload, 5", c)
	}
	if len(got.Instances) != 2 || len(got.Instances[0].Variants) != 3 || got.Instances[1].Share != 0.5 ||
		got.Instances[0].Variants[0].Limit != 5 {
		t.Errorf("instances %+v", got.Instances)
	}
	if got.Forecast.CostPerHour != 4 || got.Forecast.Accuracy != 0.9-0.2 || got.Capacity[0] != 160 {
		t.Errorf("forecast %+v, capacity %v", got.Forecast, got.Capacity)
	}
	fixed := &Planner{Profile: p, Rule: Jellyfish{}, Options: Options{Rates: []float64{40}}}
	if got, err = fixed.Plan(t.Context(), plan.Request{Spec: spec}); err != nil || text(got) != "40.00:v1*1" {
		t.Errorf("for a known load: %s, %v", text(got), err)
	}
}

// A second device type, twice as fast: three workers sum up to 2*25 + 50 for mid, which there holds two in 30 ms and so
// 66.67/s, or three in 40 ms, 75/s, or four in 50 ms, 80/s: 130/1.05 = 123.81/s. At 100/s, 105/130 of the best are
// enough: 64.6/s there, still four, the largest.
func TestJellyfishOfTwoKinds(t *testing.T) {
	spec, _ := testSpec(t, 3, slow, mid, fast)
	spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: "quick"})
	spec.Workers[2].DeviceType = 1
	var m serving.Measurements
	for v, list := range [][]float64{slow, mid, fast} {
		for b, x := range list {
			for d, factor := range []float64{1, 0.5} {
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d), Items: b + 1, Concurrency: 1,
					P95: time.Duration(x * factor * 1e6),
				})
			}
		}
	}
	p, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Planner{
		Profile: p, Rule: Jellyfish{}, Options: Options{Rates: []float64{100}},
	}).Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Policies) != 2 {
		t.Fatalf("%d policies, want one for each device type", len(got.Policies))
	}
	for d, want := range []plan.Choice{{Variant: 1, Queries: 1}, {Variant: 1, Queries: 4}} {
		if c := got.PoliciesOf(0, serving.DeviceTypeID(d)).ByRate[0].Choice(9, 0); c != want {
			t.Errorf("device type %d: %+v, want %+v", d, c, want)
		}
	}
	if s := got.Instances[2].Share; math.Abs(s-0.5) > 1e-9 {
		t.Errorf("the quick worker's share is %v, want one half: it is as fast as the other two", s)
	}
}

// The policies at every rate against the rule as the authors' code has it, on random profiles.
func TestJellyfishAgainstItsRule(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		workers := 1 + rng.IntN(20)
		var took [][]float64
		for range 1 + rng.IntN(5) {
			list := []float64{1 + 80*rng.Float64()}
			for len(list) < 8 {
				list = append(list, list[len(list)-1]+30*rng.Float64()*rng.Float64())
			}
			took = append(took, list)
		}
		spec, p := testSpec(t, workers, took...)
		got, err := (&Planner{Profile: p, Rule: Jellyfish{}}).Plan(context.Background(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		quick := 0
		for v := range took {
			if p.Latency(serving.VariantID(v), 0, 1, 1) < p.Latency(serving.VariantID(quick), 0, 1, 1) {
				quick = v
			}
		}
		for range 100 {
			rate := rng.Float64() * got.Capacity[0] * 1.2
			want := plan.Choice{Variant: serving.VariantID(quick), Queries: 8}
		search:
			for v := range took { // the most accurate comes first
				for b := 8; b >= 1; b-- {
					l := p.Latency(serving.VariantID(v), 0, b, 1)
					if float64(b)/l.Seconds() >= 1.05*rate/float64(workers) && l <= 50*ms {
						want = plan.Choice{Variant: serving.VariantID(v), Queries: int32(b)}
						break search
					}
				}
			}
			if c := got.Policies[0].At(rate).Choice(100, 0); c != want {
				t.Fatalf("seed %d, %v queries/s: %+v, want %+v", seed, rate, c, want)
			}
		}
	}
}

// One worker, batches of one, an objective as long as a batch: queries that must wait are late. Under Poisson arrivals
// their share is the share of the time in which the worker is busy.
func TestResponseAgainstTheory(t *testing.T) {
	spec, p := testSpec(t, 1, []float64{100})
	spec.Apps[0].SLO.Percentile = 1
	for _, load := range []float64{0.3, 0.6, 0.9} {
		_, stages, err := (&Planner{Profile: p, Rule: ModelSwitching{}}).stages(&plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		s := stages[0]
		got, ok := s.simulate(&s.variants[0], []int{1}, 10*load, 40_000*time.Second, rand.New(rand.NewPCG(1, 1)))
		if !ok || math.Abs(got-load) > 0.01 {
			t.Errorf("at load %v: %v are late, %v", load, got, ok)
		}
	}
}

// The same arrivals through a simulation that checks all workers at every step.
func TestResponseAgainstScanning(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		workers := 1 + rng.IntN(6)
		spec, p := testSpec(t, workers, mid)
		spec.Apps[0].SLO.Percentile = 1
		_, stages, err := (&Planner{Profile: p, Rule: ModelSwitching{}}).stages(&plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		s := stages[0]
		limit := 1 + rng.IntN(5)
		rate := float64(workers) * 50 * rng.Float64()
		span := 20 * time.Second
		got, _ := s.simulate(&s.variants[0], []int{limit}, rate, span, rand.New(rand.NewPCG(seed, 6)))

		r := rand.New(rand.NewPCG(seed, 6))
		var arrivals []int64
		for at := r.ExpFloat64() * 1e9 / rate; at < float64(span); at += r.ExpFloat64() * 1e9 / rate {
			arrivals = append(arrivals, int64(at))
		}
		free := make([]int64, workers)
		late := 0
		for next := 0; next < len(arrivals); {
			// The worker that is free first takes the queries that have arrived by then; if there are none, it waits
			// for the next.
			w := 0
			for k := range free {
				if max(free[k], arrivals[next]) < max(free[w], arrivals[next]) {
					w = k
				}
			}
			now := max(free[w], arrivals[next])
			n := 1
			for n < limit && next+n < len(arrivals) && arrivals[next+n] <= now && arrivals[next] < now {
				n++
			}
			free[w] = now + int64(mid[n-1]*1e6)
			for _, at := range arrivals[next : next+n] {
				if free[w]-at > int64(100*ms) {
					late++
				}
			}
			next += n
		}
		if want := float64(late) / float64(max(len(arrivals), 1)); math.Abs(got-want) > 1e-12 {
			t.Errorf("seed %d: %d workers, batches of %d, %.0f/s: %v late, want %v", seed, workers, limit, rate, got,
				want)
		}
	}
}

// One worker. Slow takes as long as the objective, so a query must find the worker idle: at 0.05/s 0.5 % of them do
// not, at 0.2/s 2 % do not. Mid lets one wait for 60 ms.
func TestModelSwitching(t *testing.T) {
	spec, p := testSpec(t, 1, slow[:1], mid[:1], fast[:1])
	rule := ModelSwitching{Span: 100_000 * time.Second}
	got, err := (&Planner{
		Profile: p, Rule: rule, Options: Options{Rates: []float64{0.05, 0.2, 2, 200}},
	}).Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	if want := "0.05:v0*1 2.00:v1*1 200.00:v2*1"; text(got) != want {
		t.Errorf("got %s, want %s", text(got), want)
	}
	if x := got.Policies[0].ByRate[0].Promise; math.Abs(x.Violation-0.005) > 0.001 || x.Accuracy != 0.9 ||
		math.Abs(x.Utilization-0.005) > 1e-9 {
		t.Errorf("promise %+v", x)
	}
	if x := got.Policies[0].ByRate[2].Promise; x.Violation >= 0 {
		t.Errorf("more than can be carried is promised to be late at most by %v", x.Violation)
	}
	again, err := (&Planner{
		Profile: p, Rule: rule, Options: Options{Rates: []float64{0.05, 0.2, 2, 200}},
	}).Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
		t.Errorf("a second plan differs from the first, %v", err)
	}
}

// The limit is that of the variant which Jellyfish would choose: at 140/s, 73.5/s a worker with head-room, that is fast
// with four; at 40/s mid with one.
func TestModelSwitchingLimits(t *testing.T) {
	spec, p := testSpec(t, 2, slow, mid, fast)
	_, stages, err := (&Planner{Profile: p, Rule: ModelSwitching{}}).stages(&plan.Request{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		variant int
		rate    float64
		want    int
	}{{1, 140, 4}, {1, 40, 1}, {2, 40, 1}, {2, 500, 5}} {
		if got := stages[0].sharedLimits(&stages[0].variants[x.variant], x.rate); got[0] != x.want {
			t.Errorf("%+v: %d", x, got[0])
		}
	}
}

// INFaaS takes the fastest that reaches the target or the floor, at any load; and says so when that is too slow.
func TestTarget(t *testing.T) {
	spec, p := testSpec(t, 2, slow, mid, fast)
	planner := &Planner{Profile: p, Rule: Target{}}
	for _, x := range []struct {
		floor float64
		want  string
	}{{0, "160.00:v2*4"}, {0.75, "83.33:v1*1"}, {0.85, "33.33:v0*1"}} {
		spec.Apps[0].Floor = x.floor
		got, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if text(got) != x.want {
			t.Errorf("floor %v: %s, want %s", x.floor, text(got), x.want)
		}
	}
	spec.Apps[0].Floor = 0
	for _, x := range []struct {
		target, floor float64
		want          string
	}{{0.75, 0, "83.33:v1*1"}, {0.85, 0, "33.33:v0*1"}, {0.75, 0.85, "33.33:v0*1"}, {0.99, 0.75, "83.33:v1*1"}} {
		spec.Apps[0].AccuracyTarget, spec.Apps[0].Floor = x.target, x.floor
		got, err := planner.Plan(t.Context(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if text(got) != x.want {
			t.Errorf("target %v, floor %v: %s, want %s", x.target, x.floor, text(got), x.want)
		}
	}
	spec.Apps[0].AccuracyTarget, spec.Apps[0].Floor = 0, 0.85
	spec.Apps[0].SLO.Latency = 90 * ms
	if _, err := planner.Plan(t.Context(), plan.Request{Spec: spec}); err == nil ||
		!strings.Contains(err.Error(), "accuracy_floor is 0.85") {
		t.Errorf("a target that no variant reaches in time: %v", err)
	}
	spec.Apps[0].Floor = 0.95
	if _, err := planner.Plan(t.Context(), plan.Request{Spec: spec}); err == nil ||
		!strings.Contains(err.Error(), "accuracy_floor is 0.95") {
		t.Errorf("a target beyond the best: %v", err)
	}
}

// All variants fit, or the plan names those that do not; several apps share the workers.
func TestHosting(t *testing.T) {
	spec, p := testSpec(t, 2, mid, fast)
	got, err := AllVariants{Profile: p}.Plan(t.Context(), plan.Request{Spec: spec})
	if err != nil || len(got.Instances) != 2 || len(got.Instances[1].Variants) != 2 || got.Policies != nil ||
		got.Planner != "allvariants" {
		t.Errorf("%+v, %v", got, err)
	}
	spec.DeviceTypes[0].MemoryBytes = 100
	spec.Variants[0].MemoryBytes, spec.Variants[1].ItemBytes = 60, 10
	if _, err = (AllVariants{Profile: p}).Plan(t.Context(), plan.Request{Spec: spec}); err == nil ||
		!strings.Contains(err.Error(), "need 110 bytes") {
		t.Errorf("too little memory: %v", err)
	}
	spec.DeviceTypes[0].MemoryBytes = 0
	spec.Apps = append(spec.Apps, spec.Apps[0])
	spec.Apps[1].Stages = []serving.StageID{1}
	spec.Stages = append(spec.Stages, serving.Stage{Name: "other", App: 1, Variants: []serving.VariantID{1}})
	spec.Stages[0].Variants, spec.Variants[1].Stage = []serving.VariantID{0}, 1
	// Each app has its worker, and its own policies. The first is asked for 20/s, which mid carries.
	got, err = (&Planner{Profile: p, Rule: Jellyfish{}, Options: Options{SingleRate: true}}).Plan(t.Context(),
		plan.Request{Spec: spec, Rates: []float64{20, 70}})
	if err != nil || len(got.Policies) != 2 || got.Instances[0].Stage == got.Instances[1].Stage ||
		got.Instances[1].Share != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for s, want := range []string{"20:v0*1", "70:v1*4"} {
		x := got.PoliciesOf(serving.StageID(s), 0).ByRate
		last := x[0].Choices[len(x[0].Choices)-1]
		if has := fmt.Sprintf("%v:v%d*%d", x[0].Rate, last.Variant, last.Queries); len(x) != 1 || has != want {
			t.Errorf("stage %d: %s, want %s", s, has, want)
		}
	}
	if got.Loads != 2 || got.Capacity[1] != 70 {
		t.Errorf("%d loads, capacity %v", got.Loads, got.Capacity)
	}
}
