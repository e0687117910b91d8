package scrooge

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// tables34 is the worked example of §3.3: A feeds B with a factor of 4; so many machines of types X and Y.
func tables34(t testing.TB, xs, ys int) (*serving.Spec, *profile.Table) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "X", PricePerHour: 2}, {Name: "Y", PricePerHour: 3}},
		Apps: []serving.App{
			{
				Name: "example", SLO: serving.SLO{Latency: 300 * time.Millisecond, Percentile: 99}, Weight: 1,
				QueueLimit: 1000, Stages: []serving.StageID{0, 1},
			},
		},
		Stages: []serving.Stage{
			{Name: "A", Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 4}}},
			{Name: "B", Variants: []serving.VariantID{1}, Joins: 1},
		},
		Variants: []serving.Variant{
			{Name: "a", Accuracy: 0.9, MaxBatch: 4}, {Name: "b", Stage: 1, Accuracy: 0.8, MaxBatch: 4},
		},
	}
	for range xs {
		spec.Workers = append(spec.Workers, serving.Worker{Name: "x"})
	}
	for range ys {
		spec.Workers = append(spec.Workers, serving.Worker{Name: "y", DeviceType: 1})
	}
	var m serving.Measurements
	for _, p := range []struct{ v, d, batch, slots, ms int }{
		{0, 0, 2, 1, 40}, {0, 0, 4, 2, 133}, {0, 1, 2, 1, 25}, {0, 1, 4, 2, 95},
		{1, 0, 2, 1, 20}, {1, 0, 4, 2, 67}, {1, 1, 2, 1, 13}, {1, 1, 4, 2, 40},
	} {
		m.Latency = append(m.Latency, simtest.Point(serving.VariantID(p.v), serving.DeviceTypeID(p.d), p.batch, p.slots,
			time.Duration(p.ms)*time.Millisecond, 0))
	}
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

func ask(t *testing.T, p *Planner, r plan.Request) *plan.Plan {
	t.Helper()
	out, err := p.Plan(context.Background(), r)
	if err == nil {
		err = out.Validate(r.Spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parts is how much of each worker a plan uses for its demand.
func parts(p *plan.Plan, spec *serving.Spec, believed profile.Profile, rates []float64) map[serving.WorkerID]float64 {
	out := make(map[serving.WorkerID]float64)
	for _, i := range p.Instances {
		v := i.Variants[0]
		able := float64(v.Limit*i.Slots) / believed.Latency(v.Variant, i.DeviceType(spec), v.Limit, i.Slots).Seconds()
		out[i.Worker] += i.Share * rates[i.Stage] / able
	}
	return out
}

// The allocation with the least cost by the used part of machines, 7.46 $/h, rents whole ones for 10. The plan rents 8,
// and nothing rents less, since prices of 2 and 3 have no sum from 7.46 to 8. It shares a Y as the paper does: 20/81 of
// it (with our rounding) for A and 120/160 for B.
func TestPlanOfWorkedExample(t *testing.T) {
	spec, p := tables34(t, 10, 10)
	out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec, Rates: []float64{80}})
	if f := out.Forecast; f.CostPerHour != 8 || !out.Proven || out.Bound != 8 || out.Gap != 0 ||
		math.Abs(f.Accuracy-0.72) > 1e-12 {
		t.Errorf("%+v, bound %v, gap %v: want a rent of 8, which nothing is below", f, out.Bound, out.Gap)
	}
	if used := parts(out, spec, p, []float64{80, 320}); len(used) != 3 || len(out.Instances) != 4 {
		t.Errorf("%d instances use %v, want one of three machines shared", len(out.Instances), used)
	}
	if sum := out.Budgets[0] + out.Budgets[1]; sum > 300*time.Millisecond {
		t.Errorf("budgets are %v", out.Budgets)
	}
}

// The paper's own allocation, placed as §3.4 has it: A's 20/81 and B's 120/200 share a Y.
func TestPlacementAsWritten(t *testing.T) {
	spec, p := tables34(t, 10, 10)
	paper := func(_ context.Context, x *Problem) (*Allocation, error) {
		mode := func(m, device, batch int) int {
			for k, y := range x.Modules[m].Modes {
				if y.Type == device && y.Batch == batch {
					return k
				}
			}
			t.Fatalf("module %d has no mode of batch %d on type %d", m, batch, device)
			return 0
		}
		full := x.Modules[0].Modes[mode(0, 0, 4)].Rate()
		return &Allocation{Modules: []Allocated{
			{Uses: []Use{{mode(0, 0, 4), 1, full}, {mode(0, 1, 2), 1, 80 - full}}, Budget: 200 * time.Millisecond},
			{
				Uses: []Use{{mode(1, 1, 4), 1, 200}, {mode(1, 1, 4), 1, 120}}, Budget: 74 * time.Millisecond,
				Arrives: 200 * time.Millisecond,
			},
		}}, nil
	}
	out := ask(t, &Planner{
		Profile: p, Options: Options{Method: paper, AsWritten: true},
	}, plan.Request{Spec: spec, Rates: []float64{80}})
	if out.Forecast.CostPerHour != 8 || out.Proven {
		t.Errorf("rents %v (proven: %v), want 8 and no proof", out.Forecast.CostPerHour, out.Proven)
	}
	shared := 0.0
	for _, u := range parts(out, spec, p, []float64{80, 320}) {
		if u < 0.999 {
			shared = u
		}
	}
	if math.Abs(shared-((80-8/0.133)/80+0.6)) > 1e-9 {
		t.Errorf("the shared machine is used by %v, want 20/80 + 120/200", shared)
	}
}

// Plans of random worlds keep every rule: all of the demand is served or shed, no machine is used by more than the
// whole of it, every instance is in time within its stage's budget and budgets along every path within the objective,
// memory is enough, and nothing rents less than the bound.
func TestPlanProperties(t *testing.T) {
	shed, sum, bound, served := 0, 0.0, 0.0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := simtest.Random(rng)
		for k := range rng.IntN(30) {
			c.Spec.Workers = append(c.Spec.Workers, serving.Worker{
				Name: "more", DeviceType: c.Spec.Workers[k%len(c.Spec.Workers)].DeviceType,
			})
		}
		for d := range c.Spec.DeviceTypes {
			if rng.IntN(2) == 0 {
				c.Spec.DeviceTypes[d].MemoryBytes = int64(50 + rng.IntN(100))
			}
		}
		for v := range c.Spec.Variants {
			c.Spec.Variants[v].MemoryBytes, c.Spec.Variants[v].ItemBytes = int64(rng.IntN(40)), int64(rng.IntN(3))
		}
		var rates []float64
		for range c.Spec.Apps {
			rates = append(rates, 10000*math.Pow(rng.Float64(), 4))
		}
		o := Options{AsWritten: rng.IntN(3) == 0, Single: rng.IntN(4) == 0, Headroom: []float64{0, 1.2}[rng.IntN(2)]}
		if rng.IntN(3) == 0 {
			o.Method = func(_ context.Context, p *Problem) (*Allocation, error) { return Greedy(p) }
		}
		r := plan.Request{Spec: c.Spec, Rates: rates}
		out, err := (&Planner{Profile: c.Profile, Options: o}).Plan(context.Background(), r)
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "app ") && !strings.Contains(text, "carry less than") {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		if err := out.Validate(c.Spec); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		part := 1.0
		if out.Shed != nil {
			shed++
			part = 1 - out.Shed[0]/out.Demand[0]
			if out.Shortage == nil {
				t.Errorf("seed %d: sheds and nothing is short", seed)
			}
		}
		x := (&Planner{Profile: c.Profile, Options: o}).read(r, margin{part: 1})
		stages := make([]float64, len(c.Spec.Stages))
		for _, g := range x.pipelines {
			for _, s := range g.stages {
				stages[s.id] = s.rate * part
			}
		}
		for w, u := range parts(out, c.Spec, c.Profile, stages) {
			if u > 1+1e-6 {
				t.Errorf("seed %d: worker %d is used by %v", seed, w, u)
			}
		}
		shares, memory, rent := make([]float64, len(stages)), make(map[serving.WorkerID]int64), 0.0
		for _, i := range out.Instances {
			shares[i.Stage] += i.Share
			m := Mode{
				Batch: i.Variants[0].Limit, Slots: i.Slots, Latency: c.Profile.Latency(i.Variants[0].Variant,
					i.DeviceType(c.Spec), i.Variants[0].Limit, i.Slots),
			}
			if worst := m.WorstLatency(min(i.Share*stages[i.Stage], m.Rate())); worst > out.Budgets[i.Stage]+1 {
				t.Errorf("seed %d: %+v may take %v of %v", seed, i, worst, out.Budgets[i.Stage])
			}
			if _, known := memory[i.Worker]; !known {
				rent += c.Spec.DeviceTypes[i.DeviceType(c.Spec)].PricePerHour
			}
			memory[i.Worker] += x.memory(i.Variants[0].Variant, i.Slots*i.Variants[0].Limit)
		}
		for w, m := range memory {
			if has := c.Spec.DeviceTypes[c.Spec.Workers[w].DeviceType].MemoryBytes; has > 0 && m > has {
				t.Errorf("seed %d: %d bytes on worker %d, which has %d", seed, m, w, has)
			}
		}
		if math.Abs(rent-out.Forecast.CostPerHour) > 1e-9 || out.Proven && out.Bound > rent*(1+1e-9) {
			t.Errorf("seed %d: rents %v, says %v, bound %v", seed, rent, out.Forecast.CostPerHour, out.Bound)
		}
		if out.Proven && !o.AsWritten && out.Shed == nil {
			sum, bound, served = sum+rent, bound+out.Bound, served+1
		}
		for s, all := range shares {
			if math.Abs(all-1) > 1e-6 {
				t.Errorf("seed %d: shares of stage %d add up to %v", seed, s, all)
			}
		}
		for _, app := range c.Spec.Apps {
			ends := make(map[serving.StageID]time.Duration)
			for _, s := range app.Stages {
				ends[s] += out.Budgets[s]
				if ends[s] > app.SLO.Latency-app.Slack {
					t.Errorf("seed %d: stage %d ends after %v of %v", seed, s, ends[s], app.SLO.Latency)
				}
				for _, e := range c.Spec.Stages[s].Next {
					ends[e.To] = max(ends[e.To], ends[s])
				}
			}
		}
	}
	if shed == 0 {
		t.Error("nothing was ever short")
	}
	t.Logf("%d plans rent %.2f times their bounds in all; %d shed", served, sum/bound, shed)
}

// running makes a snapshot in which a plan has been carried out.
func running(p *plan.Plan, spec *serving.Spec) *fleet.Snapshot {
	s := &fleet.Snapshot{Seq: p.Snapshot + 1}
	for n, i := range p.Instances {
		one := fleet.InstanceSnapshot{
			ID: serving.InstanceID(n + 1), Key: fleet.Key{Worker: i.Worker, Ordinal: i.Place},
			DeviceType: i.DeviceType(spec), Stage: i.Stage, State: fleet.Ready, Slots: i.Slots,
		}
		for _, v := range i.Variants {
			one.Variants = append(one.Variants, fleet.Loaded{
				Variant: v.Variant, Limit: v.Limit, Warm: true, Wanted: true,
			})
		}
		s.Instances = append(s.Instances, one)
	}
	return s
}

// Running instances go on where they are, whatever their worker's number. A worker that is down is replaced, and only
// its models are loaded.
func TestReuse(t *testing.T) {
	spec, p := tables34(t, 10, 10)
	planner := &Planner{Profile: p}
	first := ask(t, planner, plan.Request{Spec: spec, Rates: []float64{80}})
	if first.Loads != len(first.Instances) {
		t.Errorf("%d loads for %d instances", first.Loads, len(first.Instances))
	}
	for n := range first.Instances {
		first.Instances[n].Worker += 4
		first.Instances[n].Place += 7
	}
	s := running(first, spec)
	again := ask(t, planner, plan.Request{Spec: spec, Rates: []float64{80}, Snapshot: s})
	if again.Loads != 0 || again.Snapshot != s.Seq {
		t.Errorf("%d loads for the same demand, snapshot %d", again.Loads, again.Snapshot)
	}
	for n, i := range again.Instances {
		if o := first.Instances[n]; i.Worker != o.Worker || i.Place != o.Place {
			t.Errorf("instance %d went from %d/%d to %d/%d", n, o.Worker, o.Place, i.Worker, i.Place)
		}
	}
	s.Down = []serving.WorkerID{first.Instances[0].Worker}
	moved := ask(t, planner, plan.Request{Spec: spec, Rates: []float64{80}, Snapshot: s})
	for _, i := range moved.Instances {
		if i.Worker == s.Down[0] {
			t.Errorf("%+v is on a worker that is down", i)
		}
	}
	if moved.Loads != 1 {
		t.Errorf("%d loads for one instance that was lost", moved.Loads)
	}
	s.Broken = []serving.VariantID{1}
	if _, err := planner.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{80}, Snapshot: s}); err ==
		nil || !strings.Contains(err.Error(), `stage "B"`) {
		t.Errorf("with a stage that nothing serves: %v", err)
	}
}

// A type that cannot be rented is left out. If all machines are too few, the plan serves as much as they carry and
// sheds the remainder.
func TestShort(t *testing.T) {
	spec, p := tables34(t, 10, 0)
	for _, o := range []Options{{}, {AsWritten: true}} {
		out := ask(t, &Planner{Profile: p, Options: o}, plan.Request{Spec: spec, Rates: []float64{80}})
		if out.Shed != nil || out.Forecast.CostPerHour != 10 {
			t.Errorf("%+v: sheds %v, rents %v; five X carry it", o, out.Shed, out.Forecast.CostPerHour)
		}
	}
	spec, p = tables34(t, 1, 2) // what the plan for all takes
	if out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec, Rates: []float64{80}}); out.Shed != nil {
		t.Errorf("sheds %v of a demand for which there is just enough", out.Shed)
	}
	spec, p = tables34(t, 1, 1)
	last := 0.0
	for _, rate := range []float64{40, 80, 160} {
		out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec, Rates: []float64{rate}})
		served := rate
		if out.Shed != nil {
			served -= out.Shed[0]
		}
		if served < last*(1-2*capacity.DemandTolerance) || served > rate || out.Capacity[0] < served*(1-1e-9) {
			t.Errorf("%v of %v/s are served, %v of less demand; capacity %v", served, rate, last, out.Capacity[0])
		}
		last = served
		if rate == 160 && (out.Shortage == nil || out.Shortage[0]+out.Shortage[1] == 0) {
			t.Errorf("short of %v for four times as much as there is", out.Shortage)
		}
	}
	if last < 40 || last > 60 {
		t.Errorf("one machine of each type carries %v/s", last)
	}
	if _, err := (&Planner{Profile: p}).Plan(context.Background(),
		plan.Request{Spec: spec, Rates: []float64{1e6}}); err == nil || !strings.Contains(err.Error(), "it takes ") {
		t.Errorf("a demand of which nothing can be served: %v", err)
	}
	spec.Apps[0].SLO.Latency = 30 * time.Millisecond
	if _, err := (&Planner{Profile: p}).Plan(context.Background(),
		plan.Request{Spec: spec, Rates: []float64{80}}); err == nil ||
		!strings.Contains(err.Error(), "within 30ms from end to end: the least is 76ms, of which stage") {
		t.Errorf("an objective that nothing meets: %v", err)
	}
}

// An app with hardly any demand is served all the same, by batches of one where larger ones would not fill in time.
func TestRare(t *testing.T) {
	spec, p := tables34(t, 2, 2)
	out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec})
	if len(out.Instances) != 2 || out.Forecast.CostPerHour != 2 {
		t.Errorf("%+v for nobody, want both stages on an X", out.Instances)
	}
	for _, i := range out.Instances {
		if i.Variants[0].Limit != 1 || i.BatchTimeout != 0 {
			t.Errorf("%+v waits for a second item", i)
		}
	}
}

// Without spatial multiplexing everything runs a batch at a time, and costs no less.
func TestSingle(t *testing.T) {
	spec, p := tables34(t, 10, 10)
	out := ask(t, &Planner{Profile: p, Options: Options{Single: true}}, plan.Request{Spec: spec, Rates: []float64{80}})
	for _, i := range out.Instances {
		if i.Slots != 1 {
			t.Errorf("%+v", i)
		}
	}
	if out.Forecast.CostPerHour < 8 {
		t.Errorf("rents %v, with multiplexing 8", out.Forecast.CostPerHour)
	}
}

// Uses of several apps share a machine: three of the worked example at a fifth of its rate rent less together than each
// by itself.
func TestAppsShareMachines(t *testing.T) {
	one, p := tables34(t, 10, 10)
	alone := ask(t, &Planner{Profile: p}, plan.Request{Spec: one, Rates: []float64{16}})
	spec := *one
	spec.Apps = []serving.App{one.Apps[0], one.Apps[0], one.Apps[0]}
	spec.Stages, spec.Variants = nil, nil
	var m []serving.VariantID // what each is in the table
	for a := range spec.Apps {
		at := serving.StageID(2 * a)
		spec.Apps[a].Stages = []serving.StageID{at, at + 1}
		spec.Stages = append(spec.Stages,
			serving.Stage{
				Name: "A", App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(at)},
				Next: []serving.Edge{{To: at + 1, FanOut: 4}},
			},
			serving.Stage{
				Name: "B", App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(at) + 1}, Joins: 1,
			})
		for k, v := range one.Variants {
			v.Stage = at + serving.StageID(k)
			spec.Variants, m = append(spec.Variants, v), append(m, serving.VariantID(k))
		}
	}
	out := ask(t, &Planner{
		Profile: profile.Renumbered{Profile: p, Variants: m},
	}, plan.Request{Spec: &spec, Rates: []float64{16, 16, 16}})
	apps := make(map[serving.WorkerID]map[serving.AppID]bool)
	most := 0
	for _, i := range out.Instances {
		if apps[i.Worker] == nil {
			apps[i.Worker] = make(map[serving.AppID]bool)
		}
		apps[i.Worker][spec.Stages[i.Stage].App] = true
		most = max(most, len(apps[i.Worker]))
	}
	if most < 2 || out.Forecast.CostPerHour >= 3*alone.Forecast.CostPerHour {
		t.Errorf("%d apps share a machine; together they rent %v, one by itself %v", most, out.Forecast.CostPerHour,
			alone.Forecast.CostPerHour)
	}
}

// BenchmarkPlan plans a graph of four stages (a chain that forks) on two types with points up to batches of 128 and six
// at once, at a rate that takes a dozen machines.
func BenchmarkPlan(b *testing.B) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "P100", PricePerHour: 2.07}, {Name: "V100", PricePerHour: 3.06}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: 400 * time.Millisecond, Percentile: 99}, Weight: 1,
				QueueLimit: 1000, Stages: []serving.StageID{0, 1, 2, 3},
			},
		},
		Stages: []serving.Stage{
			{Name: "a", Next: []serving.Edge{{To: 1, FanOut: 3}, {To: 2, FanOut: 2}}},
			{
				Name: "b", Joins: 1, Next: []serving.Edge{{To: 3, FanOut: 1}},
			}, {Name: "c", Joins: 1}, {Name: "d", Joins: 1},
		},
	}
	for k := range 16 {
		spec.Workers = append(spec.Workers, serving.Worker{Name: "w", DeviceType: serving.DeviceTypeID(k % 2)})
	}
	var m serving.Measurements
	for s := range spec.Stages {
		spec.Stages[s].Variants = []serving.VariantID{serving.VariantID(s)}
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: "v", Stage: serving.StageID(s), Accuracy: 1, MaxBatch: 128,
		})
		for d := range spec.DeviceTypes {
			for batch := 1; batch <= 128; batch *= 2 {
				for c := 1; c <= 6; c++ {
					took := time.Duration(float64(time.Millisecond) * (4 + float64(batch)*(2+float64(s)-float64(d))) *
						(0.5 + 0.5*float64(c)*(1+0.02*float64(c))))
					m.Latency = append(m.Latency, simtest.Point(serving.VariantID(s), serving.DeviceTypeID(d), batch, c,
						took, 0))
				}
			}
		}
	}
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		b.Fatal(err)
	}
	planner := &Planner{Profile: p}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		out, err := planner.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{100 + float64(n%40)}})
		if err != nil || out.Shed != nil {
			b.Fatalf("%v, sheds %v", err, out.Shed)
		}
	}
}
