// Package packingtest makes worlds in which parts of machines are packed, for tests.
package packingtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Model is a function: a batch of b on c threads and g per cent takes fixed + b * work / speed(c, g).
type Model struct {
	SLO         time.Duration
	Batch       int
	Fixed, Work time.Duration
}

// Spec returns machines of one type, parts of every size, and an app for each model.
func Spec(workers, threads, accelerators int, memory int64, models []Model) (*serving.Spec, *profile.Table) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "machine", PricePerHour: 1, Cores: threads, Accelerators: accelerators, MemoryBytes: memory},
		},
	}
	for w := range workers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", w)})
	}
	for _, c := range []int{1, 2, 4, 8} {
		for _, g := range []int{0, 10, 20, 50} {
			if c <= threads && (g == 0 || accelerators > 0) {
				spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
					Name: fmt.Sprintf("%d+%d%%", c, g), Part: true, Cores: c, Percent: g,
				})
			}
		}
	}
	var m serving.Measurements
	for a, x := range models {
		id := serving.StageID(a)
		name := fmt.Sprintf("f%d", a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: name, SLO: serving.SLO{Latency: x.SLO, Percentile: 99}, Weight: 1, QueueLimit: 1000,
			Stages: []serving.StageID{id},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: name, App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(a)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: name, Stage: id, Accuracy: 0.9, MaxBatch: x.Batch, MemoryBytes: 100, ItemBytes: 1,
		})
		for d := 1; d < len(spec.DeviceTypes); d++ {
			t := &spec.DeviceTypes[d]
			speed := float64(t.Cores) + float64(t.Percent)/4
			for b := 1; b <= x.Batch; b *= 2 {
				took := x.Fixed + time.Duration(float64(b)*float64(x.Work)/speed)
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: serving.VariantID(a), DeviceType: serving.DeviceTypeID(d), Items: b, Concurrency: 1,
					Mean: took,
				})
			}
		}
	}
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		panic(err)
	}
	return spec, p
}

// Random is a small world and the rates of its functions.
func Random(rng *rand.Rand) (*serving.Spec, *profile.Table, []float64) {
	var models []Model
	var rates []float64
	for range 1 + rng.IntN(3) {
		models = append(models, Model{
			SLO: time.Duration(50+rng.IntN(300)) * time.Millisecond, Batch: 1 << rng.IntN(6),
			Fixed: time.Duration(1+rng.IntN(15)) * time.Millisecond,
			Work:  time.Duration(5+rng.IntN(40)) * time.Millisecond,
		})
		rates = append(rates, 600*rng.Float64())
	}
	memory := int64(0)
	if rng.IntN(2) == 0 {
		memory = 500
	}
	spec, p := Spec(1+rng.IntN(4), 8+8*rng.IntN(3), rng.IntN(3), memory, models)
	return spec, p, rates
}

// After is the snapshot of a fleet in which a plan runs.
func After(spec *serving.Spec, p *plan.Plan) *fleet.Snapshot {
	s := &fleet.Snapshot{Seq: p.Snapshot + 1}
	for n := range p.Instances {
		i := &p.Instances[n]
		s.Instances = append(s.Instances, fleet.InstanceSnapshot{
			ID: serving.InstanceID(n + 1), Key: fleet.Key{Worker: i.Worker, Ordinal: i.Place},
			DeviceType: i.DeviceType(spec), Accelerator: i.Accelerator,
			Stage: i.Stage, State: fleet.Ready, Slots: 1, Cores: i.Cores,
			Variants: []fleet.Loaded{
				{Variant: i.Variants[0].Variant, Limit: i.Variants[0].Limit, Warm: true, Wanted: true},
			},
		})
	}
	return s
}
