package simtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/serving"
)

// PartPool is a cluster of machines of three types that take turns between apps of some variants each. Machines of a
// type hold a quarter of the apps each, in so many ways; 0 for all of them. Carries is about what it serves, in
// queries/s, with the fastest variants in batches of 16.
func PartPool(machines, apps, variants, ways int, slo time.Duration) *Cluster {
	spec := &serving.Spec{}
	var place []static.Instance
	var m serving.Measurements
	for d := range 3 {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: fmt.Sprintf("type%d", d), Cores: 4})
	}
	for w := range machines {
		spec.Workers = append(spec.Workers, serving.Worker{
			Name: fmt.Sprintf("w%d", w), DeviceType: serving.DeviceTypeID(w % 3),
		})
	}
	carries := 0.0
	for a := range apps {
		s := serving.StageID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprintf("app%d", a), SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1,
			QueueLimit: 1 << 20, Stages: []serving.StageID{s},
		})
		stage := serving.Stage{Name: "only", App: serving.AppID(a)}
		for v := range variants {
			id := serving.VariantID(len(spec.Variants))
			stage.Variants = append(stage.Variants, id)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprintf("app%d-v%d", a, v), Stage: s, Accuracy: 0.9 - 0.05*float64(v), MaxBatch: 32,
			})
			for d := range 3 {
				item := time.Duration(1+d) * time.Millisecond * time.Duration(1<<(variants-1-v)) / 2
				for _, n := range []int{1, 2, 4, 8, 16, 32} {
					takes := 4*time.Millisecond + time.Duration(n)*item
					m.Latency = append(m.Latency, Point(id, serving.DeviceTypeID(d), n, 1, takes, 0))
					if v == variants-1 && n == 16 {
						carries += float64(n) / takes.Seconds() * float64(machines) / 3 / float64(apps)
					}
				}
			}
		}
		spec.Stages = append(spec.Stages, stage)
		for w := range spec.Workers {
			if ways > 0 {
				way := w / 3 % ways
				if way != a%ways && rand.New(rand.NewPCG(uint64(way), uint64(a))).IntN(4) > 0 {
					continue
				}
			}
			place = append(place, static.Instance{
				Worker: serving.WorkerID(w), Stage: s, Variants: stage.Variants, Slots: 1, Limit: 32,
			})
		}
	}
	c := build(spec, m, place)
	c.Carries = carries
	return c
}
