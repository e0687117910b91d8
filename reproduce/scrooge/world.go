package scrooge

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Machine types (§4.1; Table 2): those with an accelerator first.
const (
	p100 = iota
	v100
	cpu
	types
)

// machines of the paper's cluster. It has as many CPU workers as are asked for: §4.2 charges them without saying how
// many there were.
var machines = [types]struct {
	name  string
	price float64 // $/h
	count int
}{{"P100", 2.07, 8}, {"V100", 3.06, 8}, {"cpu", 0.83, 64}}

// scatter is the deviation of a batch's time from the profile's, relative. Networks of fixed shapes take about as long
// every time.
const scatter = 0.02

// newWorld is the paper's cluster with the graph on it, with the given end-to-end objective (0 for the graph's own). A
// stage has one model, and that is profiled on both types with accelerators, or on CPU workers.
func newWorld(g *graph, objective time.Duration, solver milp.Solver) (*experiment.World, error) {
	if objective == 0 {
		objective = g.objective
	}
	spec := &serving.Spec{Apps: []serving.App{{
		Name: g.name, SLO: serving.SLO{Latency: objective, Percentile: 98}, Weight: 1, QueueLimit: 1 << 30,
	}}}
	for d, x := range machines {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: x.name, PricePerHour: x.price, MaxMachines: x.count,
		})
		for k := range x.count {
			spec.Workers = append(spec.Workers, serving.Worker{
				Name: fmt.Sprintf("%s-%d", x.name, k), DeviceType: serving.DeviceTypeID(d),
			})
		}
	}
	var m serving.Measurements
	for s, x := range g.stages {
		v := serving.VariantID(s)
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, serving.StageID(s))
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: x.name, Variants: []serving.VariantID{v}, Stateful: x.stateful,
		})
		for _, e := range x.next {
			spec.Stages[s].Next = append(spec.Stages[s].Next, serving.Edge{
				To: serving.StageID(e.to), FanOut: e.items(usual),
			})
		}
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: x.model.name, Stage: serving.StageID(s), Accuracy: 1, MaxBatch: x.model.largest,
		})
		on := map[serving.DeviceTypeID]float64{p100: 1, v100: x.model.v100}
		if x.model.cpu {
			on = map[serving.DeviceTypeID]float64{cpu: 1}
		}
		for d := range serving.DeviceTypeID(types) {
			if faster, ok := on[d]; ok {
				m.Latency = append(m.Latency, x.model.points(v, d, faster)...)
				m.Load = append(m.Load, serving.LoadPoint{Variant: v, DeviceType: d, Load: x.model.load})
			}
		}
	}
	for _, s := range spec.Stages {
		for _, e := range s.Next {
			spec.Stages[e.To].Joins++
		}
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	out := &experiment.World{
		Spec: spec, Solver: solver, Apps: []report.AppInfo{{Name: g.name, BestAccuracy: 1, SLO: spec.Apps[0].SLO}},
	}
	var err error
	if out.Beliefs, err = profile.NewTable(spec, m, profile.Mean); err != nil {
		return nil, err
	}
	for i := range m.Latency {
		m.Latency[i].StdDev = time.Duration(scatter * float64(m.Latency[i].Mean))
	}
	happens, err := truth.NewTable(spec, m, truth.Lognormal, nil)
	if err != nil {
		return nil, err
	}
	out.Truth = func(r *rand.Rand) (truth.Model, error) { return happens.With(r), nil }
	return out, nil
}
