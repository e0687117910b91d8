package infless

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

// function is a deployed function: one of the measured models with an objective.
type function struct {
	model string
	slo   time.Duration
}

// The applications (§5.1). DSSM-2389, the third function of Q&A, was never published.
var (
	osvt = []function{{"ssd", 200 * ms}, {"mobilenet", 200 * ms}, {"resnet-50", 200 * ms}}
	qa   = []function{{"textcnn-69", 50 * ms}, {"lstm-2365", 50 * ms}}
)

// The cluster (Table 2) and its prices (§5.3): 0.034 $/h for a CPU, 2.5 $/h for an RTX 2080 Ti.
const (
	servers, threads, accelerators = 8, 32, 2
	threadPrice, acceleratorPrice  = 0.034, 2.5
)

// newEnvironment returns a cluster of servers that serves functions, with instances of every measured size. Latencies
// are the published ones; their scatter was not published. So simulated machines behave as planners believe.
func newEnvironment(functions []function, servers int) (*experiment.Environment, error) {
	all, err := readLatencies()
	if err != nil {
		return nil, err
	}
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{
		Name: "server", Cores: threads, Accelerators: accelerators, PricePerHour: threads*threadPrice +
			accelerators*acceleratorPrice,
	}}}
	devices := make(map[instanceSize]serving.DeviceTypeID)
	sizes := instanceSizes(all)
	for _, p := range sizes {
		devices[p] = serving.DeviceTypeID(len(spec.DeviceTypes))
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("%d threads + %d %%", p.threads, p.percent), Part: true, Cores: p.threads,
			Percent: p.percent,
		})
	}
	for w := range servers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("server-%d", w)})
	}
	var m serving.Measurements
	for a, f := range functions {
		name := fmt.Sprintf("%s-%d", f.model, a)
		stage, variant := serving.StageID(a), serving.VariantID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: name, SLO: serving.SLO{Latency: f.slo, Percentile: 95}, Weight: 1, QueueLimit: 1 << 30,
			ColdWait: coldWait, Stages: []serving.StageID{stage},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: name, App: serving.AppID(a), Variants: []serving.VariantID{variant},
		})
		spec.Variants = append(spec.Variants, serving.Variant{Name: name, Stage: stage, Accuracy: 1,
			MaxBatch: maxBatch})
		points := all[f.model].points(variant, func(p instanceSize) serving.DeviceTypeID { return devices[p] })
		if len(points) == 0 {
			return nil, fmt.Errorf("infless: nothing is carried of function %q", f.model)
		}
		m.Latency = append(m.Latency, points...)
		for _, s := range sizes {
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: variant, DeviceType: devices[s], Load: startTime(f.model),
			})
		}
	}
	return reproduce.NewEnvironment(spec, m, profile.Mean, truth.Lognormal)
}
