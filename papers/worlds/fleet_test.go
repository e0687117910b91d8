package worlds

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// fleetWorld is machines of three kinds, 20 apps whose demand follows Zipf's law, with four variants each, memory
// for a quarter of those, and demand that goes from 30 % of what the machines carry in batches of eight to 95 and back
// within 14 s.
func fleetWorld(counts ...int) *worlds.World {
	const (
		apps, ladder = 20, 4
		mebi         = 1 << 20
		item         = 0.4 // s of a slow machine, for an item of the fastest variant alone
		batch        = 8   // what is carried is for these
	)
	speeds := []float64{1, 2.6, 6.5}
	w := &worlds.World{Seed: 1, Name: "fleet", Spec: &serving.Spec{}}
	w.Items = make([]workload.ItemsSpec, apps)
	spec, memory, speed := w.Spec, int64(0), 0.0
	takes := func(rung, d, n int) time.Duration {
		s := item * float64(int(1)<<rung) / speeds[d] * (0.8 + 0.2*float64(n))
		return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
	}
	for d := range counts {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: fmt.Sprintf("m%d", d+1), Cores: 4})
		for k := range counts[d] {
			spec.Workers = append(spec.Workers, serving.Worker{
				Name: fmt.Sprintf("m%d-%d", d+1, k), DeviceType: serving.DeviceTypeID(d),
			})
		}
		speed += float64(counts[d]) * speeds[d]
	}
	for a := range apps {
		app := serving.App{
			Name: fmt.Sprintf("app%d", a+1), SLO: serving.SLO{Percentile: 99, Latency: 2 * time.Second}, Weight: 1,
			QueueLimit: max(10_000, 100*len(spec.Workers)), ColdWait: 30 * time.Second,
			Stages: []serving.StageID{serving.StageID(a)},
		}
		stage := serving.Stage{Name: app.Name, App: serving.AppID(a)}
		for rung := range ladder {
			v := serving.VariantID(len(spec.Variants))
			stage.Variants = append(stage.Variants, v)
			bytes := int64(100+50*rung) * mebi
			memory += bytes
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprintf("app%d-v%d", a+1, rung+1), Stage: serving.StageID(a), MaxBatch: 32,
				Accuracy: 0.7 + 0.08*float64(rung), MemoryBytes: bytes,
			})
			for d := range counts {
				for n := 1; n <= 32; n *= 2 {
					t := takes(rung, d, n)
					w.Measurements.Latency = append(w.Measurements.Latency, serving.LatencyPoint{
						Variant: v, DeviceType: serving.DeviceTypeID(d), Items: n, Concurrency: 1, Samples: 100,
						Mean: t, P50: t, P90: t, P95: t, P99: t,
					})
				}
				w.Measurements.Load = append(w.Measurements.Load, serving.LoadPoint{
					Variant: v, DeviceType: serving.DeviceTypeID(d), Load: time.Second,
				})
			}
		}
		spec.Apps, spec.Stages = append(spec.Apps, app), append(spec.Stages, stage)
	}
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].MemoryBytes = memory / 4
	}
	carried := speed * batch / takes(0, 0, batch).Seconds()
	shares := 0.0
	for a := range apps {
		shares += 1 / float64(a+1)
	}
	w.Workload = workload.Spec{Seed: 1, DurationS: 14}
	levels := []workload.Segment{{AtS: 0, Rate: 0.3}, {AtS: 2, Rate: 0.75}, {AtS: 5, Rate: 0.95}, {AtS: 8, Rate: 0.5},
		{AtS: 11, Rate: 0.3}}
	for a := range apps {
		x := workload.AppSpec{App: spec.Apps[a].Name}
		rate := carried / float64(a+1) / shares
		for _, l := range levels {
			x.Rates = append(x.Rates, workload.Segment{AtS: l.AtS, Rate: rate * l.Rate})
		}
		w.Workload.Apps = append(w.Workload.Apps, x)
		w.Demand = append(w.Demand, float64(int(rate*0.3)))
	}
	return w
}

// In a large fleet with little memory the default keeps up with demand that moves, and no other system is ahead.
func TestLargeFleetWithLittleMemory(t *testing.T) {
	p, refused, err := read(fleetWorld(30, 60, 90))
	if err != nil || refused != "" {
		t.Fatal(err, refused)
	}
	most, err := p.limit(t.Context(), highstest.Solver(t))
	if err != nil {
		t.Fatal(err)
	}
	shares := make(map[string]float64)
	for _, name := range []string{systems.Default, "proteus"} {
		s, err := systems.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.run(t.Context(), s, highstest.Solver(t), nil)
		if err != nil || r.refused != "" {
			t.Fatal(name, err, r.refused)
		}
		shares[name] = share(r, most)
		t.Logf("%s: %.3f of the bound, %.1f %% in time", name, shares[name], 100*r.inTime)
	}
	if x := shares[systems.Default]; x < 0.95 || x < shares["proteus"] {
		t.Errorf("%.3f of the bound, proteus has %.3f", x, shares["proteus"])
	}
}
