package kairos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// linear is a profile in which latencies that are not listed are Unknown.
type linear map[[2]int]struct{ base, item time.Duration }

func (l linear) Latency(v serving.VariantID, d serving.DeviceTypeID, items, _ int) time.Duration {
	x, ok := l[[2]int{int(v), int(d)}]
	if !ok {
		return profile.Unknown
	}
	return x.base + time.Duration(items)*x.item
}

func (linear) Learner() profile.Learner { return nil }

func (l linear) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// testSpec returns n workers of each of three types, and apps of one stage with one variant and an objective of 100 ms.
// gpu serves 1000 items in time, cpu 250, old 100.
func testSpec(apps, n int) (*serving.Spec, linear) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "gpu", PricePerHour: 0.5, Cores: 4}, {Name: "cpu", PricePerHour: 0.2, Cores: 8},
			{Name: "old", PricePerHour: 0.1, Cores: 2},
		},
	}
	for i := range 3 * n {
		spec.Workers = append(spec.Workers, serving.Worker{
			Name: fmt.Sprint("w", i), DeviceType: serving.DeviceTypeID(i % 3),
		})
	}
	known := linear{}
	for a := range apps {
		spec.Apps = append(spec.Apps, serving.App{Name: fmt.Sprint("app", a),
			SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Weight: 1, QueueLimit: 100,
			Stages: []serving.StageID{serving.StageID(a)}, Mix: serving.Mix{
				Sizes: []int32{50, 200, 800}, Shares: []float64{0.5, 0.3, 0.2},
			}})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: fmt.Sprint("stage", a), App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(a)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: fmt.Sprint("model", a), Stage: serving.StageID(a), Accuracy: 0.8, MaxBatch: 1000,
		})
		for d, x := range []struct {
			base, item time.Duration
		}{
			{20 * time.Millisecond, 80 * time.Microsecond}, {10 * time.Millisecond, 360 * time.Microsecond},
			{5 * time.Millisecond, 900 * time.Microsecond},
		} {
			known[[2]int{a, d}] = x
		}
	}
	return spec, known
}

func counts(spec *serving.Spec, p *plan.Plan, a serving.AppID) Pool {
	out := make(Pool, len(spec.DeviceTypes))
	for _, i := range p.Instances {
		if spec.Stages[i.Stage].App == a {
			out[spec.Workers[i.Worker].DeviceType]++
		}
	}
	return out
}

func must(t *testing.T, p *Planner, r plan.Request) *plan.Plan {
	t.Helper()
	out, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(r.Spec); err != nil {
		t.Fatal(err)
	}
	for a := range r.Spec.Apps {
		sum := 0.0
		for _, i := range out.Instances {
			if r.Spec.Stages[i.Stage].App == serving.AppID(a) {
				sum += i.Share
			}
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Fatalf("shares of app %d add up to %v", a, sum)
		}
	}
	if p.Options.Budget > 0 && out.Forecast.CostPerHour > p.Options.Budget*(1+1e-9) {
		t.Fatalf("the plan costs %v of %v $/h", out.Forecast.CostPerHour, p.Options.Budget)
	}
	return out
}

// The pool is the one that ranking and the similarity rule give, with either bound.
func TestPlanRentsTheChosenPool(t *testing.T) {
	spec, known := testSpec(1, 12)
	for _, fluid := range []bool{false, true} {
		p := &Planner{Profile: known, Options: Options{Budget: 2.5, Fluid: fluid}}
		out := must(t, p, plan.Request{Spec: spec, Rates: []float64{10}})
		m, err := NewMarket(known, spec, 0, &spec.Apps[0].Mix, nil, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		pools, err := m.Pools(2.5) // none with more than 12 machines of a type ranks first
		if err != nil {
			t.Fatal(err)
		}
		var b Bound = NewUpper(m)
		if fluid {
			b, _ = NewFluid(m, 0.01)
		}
		pools = slices.DeleteFunc(pools, func(x Pool) bool { return slices.Max(x) > 12 })
		ranked := Rank(m, b, pools)
		want := ranked[BestSuperset(ranked, ChooseBySimilarity(m, ranked))]
		if got := counts(spec, out, 0); !slices.Equal(got, want.Pool) {
			t.Errorf("fluid %v: rented %v, want %v", fluid, got, want.Pool)
		}
		if math.Abs(out.Forecast.Throughput-want.Bound) > 1e-6*want.Bound ||
			out.Capacity[0] != out.Forecast.Throughput || out.Forecast.Violation >= 0 || out.Shed != nil {
			t.Errorf("fluid %v: %+v, capacity %v, want a throughput of %v", fluid, out.Forecast, out.Capacity,
				want.Bound)
		}
		late := 0.0
		if fluid {
			late = 0.01
		}
		f, err := NewFluid(m, late)
		if err != nil {
			t.Fatal(err)
		}
		rates := f.Solve(want.Pool).MarginalRates
		for k, w := range rates {
			if math.Abs(out.MarginalRates[0][m.Types[k].Device]-w) > 1e-9*rates[0] {
				t.Errorf("fluid %v: marginal rates %v, want %v", fluid, out.MarginalRates[0], rates)
			}
		}
		if slices.Max(rates) <= 0 {
			t.Errorf("fluid %v: no machine adds anything: %v", fluid, rates)
		}
		if out.Prefer[0] != 0 || out.Demand[0] != 10 || out.Mixes[0].Largest() != 800 {
			t.Errorf("prefers %v, demand %v, mixes %v", out.Prefer, out.Demand, out.Mixes)
		}
		for _, i := range out.Instances {
			if d := spec.DeviceTypes[spec.Workers[i.Worker].DeviceType]; i.Slots != 1 || i.Cores != d.Cores ||
				i.Variants[0].Limit != 1000 {
				t.Errorf("%+v", i)
			}
		}
	}
	out := must(t, &Planner{
		Profile: known, Options: Options{Budget: 2.5},
	}, plan.Request{Spec: spec, Rates: []float64{1e4}})
	if math.Abs(out.Shed[0]-(1e4-out.Capacity[0])) > 1e-6 {
		t.Errorf("of 10000 queries/s with a capacity of %v, %v are shed", out.Capacity, out.Shed)
	}
}

// A new plan changes as little as possible: from any placement as many workers continue as the two pools have in
// common.
func TestPlanKeepsWhatRuns(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 6))
		spec, known := testSpec(1, 12)
		p := &Planner{Profile: known, Options: Options{Budget: 1 + 2*rng.Float64()}}
		s := &fleet.Snapshot{Seq: 9}
		runs := make(map[serving.WorkerID]bool)
		had := make(Pool, 3)
		for w := range spec.Workers {
			switch rng.IntN(10) {
			case 0, 1, 2:
				s.Instances = append(s.Instances, fleet.InstanceSnapshot{
					Key: fleet.Key{Worker: serving.WorkerID(w), Ordinal: 1}, State: fleet.Ready,
					Variants: []fleet.Loaded{{Variant: 0, Warm: true, Wanted: true}},
				})
				runs[serving.WorkerID(w)] = true
				had[w%3]++
			case 3:
				s.Down = append(s.Down, serving.WorkerID(w))
			}
		}
		out := must(t, p, plan.Request{Spec: spec, Snapshot: s})
		kept := make(Pool, 3)
		for _, i := range out.Instances {
			if slices.Contains(s.Down, i.Worker) {
				t.Fatalf("seed %d: worker %d is down", seed, i.Worker)
			}
			if runs[i.Worker] {
				kept[i.Worker%3]++
			}
		}
		got := counts(spec, out, 0)
		for d := range kept {
			if kept[d] != min(had[d], got[d]) {
				t.Fatalf("seed %d: %d of %d machines of type %d go on where %d are rented", seed, kept[d], had[d], d,
					got[d])
			}
		}
		if out.Snapshot != 9 || out.Loads != got.Machines()-kept.Machines() {
			t.Fatalf("seed %d: %d loads, snapshot %d", seed, out.Loads, out.Snapshot)
		}
	}
}

// Prices, beliefs and mixes of the request come before those of the spec and the planner.
func TestPlanHeedsTheRequest(t *testing.T) {
	spec, known := testSpec(1, 12)
	p := &Planner{Profile: linear{}, Options: Options{Budget: 2.5}}
	r := plan.Request{Spec: spec, Beliefs: known}
	before := counts(spec, must(t, p, r), 0)
	r.Prices = []float64{0.05, 1, 1}
	if got := counts(spec, must(t, p, r), 0); got[0] != 12 {
		t.Errorf("gpu at 5 cents: %v, before %v", got, before)
	}
	r.Prices = nil
	r.Mixes = []serving.Mix{{Sizes: []int32{800}, Shares: []float64{1}}}
	if got := counts(spec, must(t, p, r), 0); !slices.Equal(got, Pool{5, 0, 0}) {
		t.Errorf("large queries only: %v, want gpu alone", got)
	}
	spec.DeviceTypes[0].MaxMachines = 2
	if got := counts(spec, must(t, p, r), 0); got[0] != 2 {
		t.Errorf("at most two: %v", got)
	}
}

func TestPlanWithoutBudget(t *testing.T) {
	spec, known := testSpec(1, 5)
	if got := counts(spec, must(t, &Planner{Profile: known}, plan.Request{Spec: spec}), 0); !slices.Equal(got,
		Pool{5, 5, 5}) {
		t.Errorf("rented %v, want all", got)
	}
}

// Sizes that nothing serves in time are left out, and Violation is their share. If nothing serves anything, the error
// names size, type and time.
func TestPlanWithoutBaseType(t *testing.T) {
	spec, known := testSpec(1, 12)
	spec.Apps[0].SLO.Latency = 80 * time.Millisecond // 800 items take 84 ms on gpu
	for _, fluid := range []bool{false, true} {
		out := must(t, &Planner{Profile: known, Options: Options{Budget: 2.5, Fluid: fluid}}, plan.Request{Spec: spec})
		if math.Abs(out.Forecast.Violation-0.2) > 1e-9 || math.Abs(out.Capacity[0]*0.8-out.Forecast.Throughput) >
			1e-9*out.Capacity[0] {
			t.Errorf("fluid %v: forecast %+v, capacity %v; a fifth of the queries cannot be served", fluid,
				out.Forecast, out.Capacity)
		}
	}
	spec.Apps[0].SLO.Latency = 20 * time.Millisecond
	_, err := (&Planner{Profile: known}).Plan(context.Background(), plan.Request{Spec: spec})
	if want := `app "app0", variant "model0": no type of machine serves every size of query in time: 50 items take ` +
		`24ms on the fastest, "gpu", and the objective leaves 20ms`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error that says %q", err, want)
	}
}

func TestPlanRefused(t *testing.T) {
	for want, change := range map[string]func(*serving.Spec, *Planner, *plan.Request){
		"has 2 stages":        func(s *serving.Spec, _ *Planner, _ *plan.Request) { chain(s) },
		"no pool for 0.3 $/h": func(_ *serving.Spec, p *Planner, _ *plan.Request) { p.Options.Budget = 0.3 },
		"the budget is -1":    func(_ *serving.Spec, p *Planner, _ *plan.Request) { p.Options.Budget = -1 },
		"no variant is left": func(_ *serving.Spec, _ *Planner, r *plan.Request) {
			r.Snapshot = &fleet.Snapshot{Broken: []serving.VariantID{0}}
		},
		"all 3 are down": func(_ *serving.Spec, _ *Planner, r *plan.Request) {
			r.Snapshot = &fleet.Snapshot{Down: []serving.WorkerID{0, 1, 2}}
		},
		"does not fit the memory": func(s *serving.Spec, _ *Planner, _ *plan.Request) { big(s) },
		"find out how fast it runs": func(_ *serving.Spec, p *Planner, _ *plan.Request) {
			p.Profile, p.Options.Budget = linear{}, 0.01
		},
	} {
		spec, known := testSpec(1, 1)
		p, r := &Planner{Profile: known}, plan.Request{Spec: spec}
		change(spec, p, &r)
		if _, err := p.Plan(context.Background(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
}

func chain(s *serving.Spec) {
	s.Stages = append(s.Stages, serving.Stage{Name: "second", Joins: 1})
	s.Apps[0].Stages = []serving.StageID{0, 1}
	s.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 1}}
}

func big(s *serving.Spec) {
	s.Variants[0].MemoryBytes = 100
	for d := range s.DeviceTypes {
		s.DeviceTypes[d].MemoryBytes = 50
	}
}

// Four apps, three machines, or money for one of each type: apps with less demand share a machine that others rent. All
// stay within the budget, and a second plan moves nothing.
func TestAppsShareMachines(t *testing.T) {
	for _, budget := range []float64{0, 0.8, 1.6} {
		spec, known := testSpec(4, 1)
		p := &Planner{Profile: known, Options: Options{Budget: budget}}
		r := plan.Request{Spec: spec, Rates: []float64{1, 4, 2, 3}}
		out := must(t, p, r)
		served, on := make([]int, 4), make(map[serving.WorkerID]int)
		snapshot := &fleet.Snapshot{}
		for _, i := range out.Instances {
			served[i.Stage]++
			on[i.Worker]++
			snapshot.Instances = append(snapshot.Instances, fleet.InstanceSnapshot{
				Key: fleet.Key{Worker: i.Worker, Ordinal: i.Place}, Stage: i.Stage, State: fleet.Ready,
				DeviceType: i.DeviceType(spec),
				Variants:   []fleet.Loaded{{Variant: i.Variants[0].Variant, Wanted: true, Warm: true}},
			})
		}
		if slices.Contains(served, 0) || len(out.Sharing) == 0 || slices.Contains(out.Sharing, 1) ||
			budget > 0 && out.Forecast.CostPerHour > budget*(1+1e-9) {
			t.Errorf("%v $/h: instances by app %v, %v share, %v $/h", budget, served, out.Sharing,
				out.Forecast.CostPerHour)
		}
		for _, i := range out.Instances {
			if i.TimeShared != (on[i.Worker] > 1) {
				t.Errorf("%v $/h: %+v on a worker of %d", budget, i, on[i.Worker])
			}
		}
		r.Snapshot = snapshot
		if again := must(t, p, r); again.Loads != 0 || fmt.Sprint(again.Instances) != fmt.Sprint(out.Instances) {
			t.Errorf("%v $/h: %v becomes %v", budget, out.Instances, again.Instances)
		}
	}
}

// One machine of each unknown type is rented, so that it is learned. If nothing is known, the planner rents all that
// the budget pays.
func TestPlanExplores(t *testing.T) {
	spec, known := testSpec(1, 12)
	p := &Planner{Profile: linear{}, Options: Options{Budget: 2.5}}
	// One machine of each type in turn: 0.1 + 0.2 + 0.5, three times, and then one of 0.1.
	if got := counts(spec, must(t, p, plan.Request{Spec: spec}), 0); !slices.Equal(got, Pool{3, 3, 4}) {
		t.Errorf("nothing known: %v", got)
	}
	delete(known, [2]int{0, 1})
	p.Profile = known
	if got := counts(spec, must(t, p, plan.Request{Spec: spec}), 0); got[1] != 1 || got[0] == 0 {
		t.Errorf("cpu not known: %v", got)
	}
}

// The most accurate variant that is in time at every size; else the one that serves most.
func TestPlanChoosesVariants(t *testing.T) {
	spec, known := testSpec(1, 6)
	spec.Stages[0].Variants = []serving.VariantID{0, 1, 2}
	spec.Variants = append(spec.Variants, serving.Variant{Name: "large", Accuracy: 0.9, MaxBatch: 1000},
		serving.Variant{Name: "small", Accuracy: 0.7, MaxBatch: 1000})
	known[[2]int{1, 0}] = struct{ base, item time.Duration }{20 * time.Millisecond, 300 * time.Microsecond}
	known[[2]int{2, 0}] = struct{ base, item time.Duration }{time.Millisecond, time.Microsecond}
	p := &Planner{Profile: known, Options: Options{Budget: 2.5}}
	for within, want := range map[int]serving.VariantID{100: 0, 300: 1, 10: 2} {
		spec.Apps[0].SLO.Latency = time.Duration(within) * time.Millisecond
		out := must(t, p, plan.Request{Spec: spec})
		for _, i := range out.Instances {
			if d := spec.Workers[i.Worker].DeviceType; d == 0 && i.Variants[0].Variant != want {
				t.Errorf("within %d ms: variant %d, want %d", within, i.Variants[0].Variant, want)
			}
		}
	}
}

// With several apps no division of the budget gives all of them a larger multiple of their demand. All pairs of pools
// are tried.
func TestPlanDividesTheBudget(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 8))
		spec, known := testSpec(2, 40)
		x := known[[2]int{1, 0}]
		x.base /= time.Duration(1 + rng.IntN(4))
		known[[2]int{1, 0}] = x
		spec.Apps[1].Mix = serving.Mix{Sizes: []int32{50, 900}, Shares: []float64{0.7, 0.3}}
		r := plan.Request{Spec: spec, Rates: []float64{1 + 20*rng.Float64(), 1 + 20*rng.Float64()}}
		p := &Planner{Profile: known, Options: Options{Budget: 1.5 + rng.Float64(), Fluid: seed%2 == 0}}
		out := must(t, p, r)
		got := min(out.Capacity[0]/r.Rates[0], out.Capacity[1]/r.Rates[1])
		var ranked [2][]Ranked
		for a := range ranked {
			m, err := NewMarket(known, spec, serving.VariantID(a), &spec.Apps[a].Mix, nil, 100*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			pools, err := m.Pools(p.Options.Budget)
			if err != nil {
				t.Fatal(err)
			}
			var b Bound = NewUpper(m)
			if p.Options.Fluid {
				b, _ = NewFluid(m, 0.01)
			}
			ranked[a] = Rank(m, b, pools)
		}
		best := 0.0
		for _, y := range ranked[0] {
			for _, z := range ranked[1] {
				if y.Cost+z.Cost <= p.Options.Budget*(1+1e-9) {
					best = max(best, min(y.Bound/r.Rates[0], z.Bound/r.Rates[1]))
				}
			}
		}
		if math.Abs(got-best) > 1e-6*best {
			t.Errorf("seed %d: the apps get %v times their demand, %v is possible", seed, got, best)
		}
	}
}

// For random requests a plan is valid, keeps budget, limits and failed workers, and the same request gives the same
// plan; or the planner fails with a reason.
func TestPlanProperties(t *testing.T) {
	made := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 9))
		spec, known := testSpec(1+rng.IntN(3), 1+rng.IntN(5))
		for at, x := range known {
			if rng.IntN(8) == 0 {
				delete(known, at)
				continue
			}
			x.base, x.item = x.base*time.Duration(rng.IntN(300)+1)/100, x.item*time.Duration(rng.IntN(200)+1)/100
			known[at] = x
		}
		r := plan.Request{Spec: spec, Snapshot: &fleet.Snapshot{}, Rates: make([]float64, len(spec.Apps))}
		for d := range spec.DeviceTypes {
			spec.DeviceTypes[d].MaxMachines = rng.IntN(5)
			r.Prices = append(r.Prices, 0.01+rng.Float64())
		}
		for a := range r.Rates {
			r.Rates[a] = 100 * rng.Float64()
		}
		for w := range spec.Workers {
			if rng.IntN(10) == 0 {
				r.Snapshot.Down = append(r.Snapshot.Down, serving.WorkerID(w))
			}
		}
		p := &Planner{
			Profile: known, Options: Options{Budget: 4 * rng.Float64() * float64(rng.IntN(2)), Fluid: rng.IntN(2) == 0},
		}
		if _, err := p.Plan(context.Background(), r); err != nil {
			if len(err.Error()) < 20 {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		made++
		out := must(t, p, r)
		used, seen := make([]int, len(spec.DeviceTypes)), make(map[serving.WorkerID]bool)
		for _, i := range out.Instances {
			if !seen[i.Worker] {
				used[spec.Workers[i.Worker].DeviceType]++
				seen[i.Worker] = true
			}
			if slices.Contains(r.Snapshot.Down, i.Worker) {
				t.Fatalf("seed %d: worker %d is down", seed, i.Worker)
			}
		}
		for d, n := range used {
			if most := spec.DeviceTypes[d].MaxMachines; most > 0 && n > most {
				t.Fatalf("seed %d: %d machines of type %d, at most %d can be had", seed, n, d, most)
			}
		}
		again := must(t, p, r)
		if fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", out) {
			t.Fatalf("seed %d: %+v, then %+v", seed, out, again)
		}
	}
	if made < 100 {
		t.Errorf("only %d plans were made", made)
	}
}
