package nexus

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// graphSpec is an app detect -> crop -> read with three readings for each frame: crop runs on machines without an
// accelerator only, the others on two types with one, of which the second is twice as fast.
func graphSpec(t *testing.T, slow, fast, cpus int) (*serving.Spec, *profile.Table) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "slow", PricePerHour: 2}, {Name: "fast", PricePerHour: 3}, {Name: "cpu", PricePerHour: 0.8},
		},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: 400 * ms, Percentile: 99}, Weight: 1, QueueLimit: 1000,
				Stages: []serving.StageID{0, 1, 2},
			},
		},
		Stages: []serving.Stage{
			{Name: "detect", Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 1}}},
			{Name: "crop", Variants: []serving.VariantID{1}, Joins: 1, Next: []serving.Edge{{To: 2, FanOut: 3}}},
			{Name: "read", Variants: []serving.VariantID{2}, Joins: 1},
		},
		Variants: []serving.Variant{
			{Name: "d", Accuracy: 0.9, MaxBatch: 32}, {Name: "c", Stage: 1, Accuracy: 1, MaxBatch: 1}, {
				Name: "r", Stage: 2, Accuracy: 0.8, MaxBatch: 32,
			},
		},
	}
	for d, n := range []int{slow, fast, cpus} {
		for range n {
			spec.Workers = append(spec.Workers, serving.Worker{Name: "w", DeviceType: serving.DeviceTypeID(d)})
		}
	}
	var m serving.Measurements
	for b := 1; b <= 32; b *= 2 {
		for d, speed := range []time.Duration{2, 1} {
			m.Latency = append(m.Latency, simtest.Point(0, serving.DeviceTypeID(d), b, 1,
				speed*time.Duration(10+4*b)*ms, 0), simtest.Point(2, serving.DeviceTypeID(d), b, 1,
				speed*time.Duration(4+b)*ms, 0))
		}
	}
	for c := 1; c <= 4; c++ {
		m.Latency = append(m.Latency, simtest.Point(1, 2, 1, c, time.Duration(20+5*c)*ms, 0))
	}
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

// There are as many front-ends as the option says, whatever the load. They run the stages that no accelerator runs. The
// other stages are planned as if all machines were of the most common type.
func TestPlan(t *testing.T) {
	spec, p := graphSpec(t, 8, 6, 9)
	for _, c := range []struct{ frontends, want int }{{0, 1}, {3, 3}, {20, 9}} {
		for _, rate := range []float64{5, 60} {
			out, err := (&Planner{Profile: p, Options: Options{Frontends: c.frontends}}).Plan(context.Background(),
				plan.Request{Spec: spec, Rates: []float64{rate}})
			if err == nil {
				err = out.Validate(spec)
			}
			if err != nil {
				t.Fatal(err)
			}
			shares, rent := make([]float64, 3), 0.0
			used := make(map[serving.WorkerID]bool)
			n := 0
			for _, i := range out.Instances {
				d := spec.Workers[i.Worker].DeviceType
				if shares[i.Stage] += i.Share; (d == 2) != (i.Stage == 1) || i.Stage != 1 && i.Slots != 1 {
					t.Errorf("%+v is on %q", i, spec.DeviceTypes[d].Name)
				}
				if i.Stage == 1 {
					if n++; i.Slots != 4 {
						t.Errorf("a front-end runs %d at once, 4 serve most", i.Slots)
					}
				}
				if !used[i.Worker] {
					used[i.Worker] = true
					rent += spec.DeviceTypes[d].PricePerHour
				}
			}
			if n != c.want || math.Abs(rent-out.Forecast.CostPerHour) > 1e-9 || out.Shed != nil ||
				math.Abs(out.Forecast.Accuracy-0.72) > 1e-9 {
				t.Errorf("%d front-ends of %d, %+v, sheds %v, rents %v", n, c.want, out.Forecast, out.Shed, rent)
			}
			for s, all := range shares {
				if math.Abs(all-1) > 1e-9 {
					t.Errorf("shares of stage %d add up to %v", s, all)
				}
			}
			if sum := out.Budgets[0] + out.Budgets[1] + out.Budgets[2]; sum > 400*ms || out.Budgets[1] < 40*ms {
				t.Errorf("budgets are %v", out.Budgets)
			}
		}
	}
}

// The believed type decides how many machines are taken, not which: machines of both types are used in turn.
func TestHomogeneousView(t *testing.T) {
	spec, p := graphSpec(t, 8, 6, 1)
	machines := make(map[string]int)
	for _, alike := range []string{"slow", "fast", ""} {
		out, err := (&Planner{Profile: p, Options: Options{Alike: alike}}).Plan(context.Background(),
			plan.Request{Spec: spec, Rates: []float64{150}})
		if err != nil {
			t.Fatal(err)
		}
		types := make(map[serving.DeviceTypeID]bool)
		used := make(map[serving.WorkerID]bool)
		for _, i := range out.Instances {
			types[spec.Workers[i.Worker].DeviceType], used[i.Worker] = true, true
		}
		if machines[alike] = len(used); !types[0] || !types[1] {
			t.Errorf("as %q: types %v", alike, types)
		}
	}
	if machines["fast"] >= machines["slow"] || machines[""] != machines["slow"] {
		t.Errorf("%v machines: fewer are believed to do if all are fast, and most are slow", machines)
	}
	if _, err := (&Planner{Profile: p, Options: Options{Alike: "none"}}).Plan(context.Background(),
		plan.Request{Spec: spec}); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a type that does not exist: %v", err)
	}
}

// If there are too few machines, the plan serves as much as they carry and sheds the remainder.
func TestShed(t *testing.T) {
	spec, p := graphSpec(t, 2, 0, 1)
	last := 0.0
	for _, rate := range []float64{5, 20, 80, 320} {
		out, err := (&Planner{Profile: p}).Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{rate}})
		if err != nil {
			t.Fatal(err)
		}
		served := rate
		if out.Shed != nil {
			served -= out.Shed[0]
		}
		if served < last*0.9 || out.Capacity[0] < served*(1-1e-6) || (out.Shortage == nil) != (out.Shed == nil) {
			t.Errorf("%v of %v are served, of less %v; capacity %v, short %v", served, rate, last, out.Capacity[0],
				out.Shortage)
		}
		last = served
	}
	if last > 150 {
		t.Errorf("two machines serve %v/s", last)
	}
}

// Random worlds are planned, or refused with the reason.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := simtest.Random(rng)
		for k := range 20 {
			c.Spec.Workers = append(c.Spec.Workers, serving.Worker{
				Name: "more", DeviceType: c.Spec.Workers[k%len(c.Spec.Workers)].DeviceType,
			})
		}
		var rates []float64
		for range c.Spec.Apps {
			rates = append(rates, 500*math.Pow(rng.Float64(), 3))
		}
		out, err := (&Planner{Profile: c.Profile}).Plan(context.Background(), plan.Request{Spec: c.Spec, Rates: rates})
		if err == nil {
			err = out.Validate(c.Spec)
		} else if strings.Contains(err.Error(), "app ") || strings.Contains(err.Error(), "workers can host") {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, app := range c.Spec.Apps {
			ends := make(map[serving.StageID]time.Duration)
			for _, s := range app.Stages {
				if ends[s] += out.Budgets[s]; ends[s] > app.SLO.Latency {
					t.Errorf("seed %d: stage %d ends after %v of %v", seed, s, ends[s], app.SLO.Latency)
				}
				for _, e := range c.Spec.Stages[s].Next {
					ends[e.To] = max(ends[e.To], ends[s])
				}
			}
		}
	}
}
