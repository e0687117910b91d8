package simtest

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/serving"
)

// Staged returns a cluster of one app of the given stages, in a topological order. It uses only their Name, Next and
// Stateful. Each has one variant, whose batch of b items takes base + b*perItem up to maxBatch at once, and n instances
// with a worker each.
func Staged(stages []serving.Stage, n int, base, perItem, slo time.Duration, maxBatch int) *Cluster {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", PricePerHour: 1, Cores: 1}},
		Apps: []serving.App{
			{Name: "app", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 1 << 20},
		},
		Stages: stages,
	}
	var m serving.Measurements
	var place []static.Instance
	for s := range stages {
		id, v := serving.StageID(s), serving.VariantID(s)
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, id)
		spec.Stages[s].Variants = []serving.VariantID{v}
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: stages[s].Name, Stage: id, Accuracy: 0.9, MaxBatch: maxBatch,
		})
		for _, e := range stages[s].Next {
			spec.Stages[e.To].Joins++
		}
		for b := 1; b <= maxBatch; b++ {
			m.Latency = append(m.Latency, Point(v, 0, b, 1, base+time.Duration(b)*perItem, 0))
		}
		for range n {
			w := serving.WorkerID(len(spec.Workers))
			spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", w)})
			place = append(place, static.Instance{
				Worker: w, Stage: id, Variants: []serving.VariantID{v}, Limit: maxBatch,
			})
		}
	}
	return build(spec, m, place)
}
