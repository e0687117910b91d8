package scrooge

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Machine types (§4.1; Table 2), those with an accelerator first.
const (
	p100 = iota
	v100
	cpu
	typeCount
)

// machineTypes are those of the paper's cluster. §4.2 charges CPU workers without saying how many there were, so there
// are always enough.
var machineTypes = [typeCount]struct {
	name  string
	price float64 // $/h
	count int
}{{"P100", 2.07, 8}, {"V100", 3.06, 8}, {"cpu", 0.83, 64}}

// scatter is the relative deviation of a batch's time from the profile. Networks of fixed shapes take about the same
// time on every run.
const scatter = 0.02

// newEnvironment returns the paper's cluster with the graph, and with an end-to-end objective (0 for the graph's own).
// Every stage has one model, profiled on both types with accelerators or on CPU workers.
func newEnvironment(g *graph, objective time.Duration, solver milp.Solver) (*experiment.Environment, error) {
	if objective == 0 {
		objective = g.objective
	}
	spec := &serving.Spec{Apps: []serving.App{{
		Name: g.name, SLO: serving.SLO{Latency: objective, Percentile: 98}, Weight: 1, QueueLimit: 1 << 30,
	}}}
	for d, x := range machineTypes {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: x.name, PricePerHour: x.price, MaxMachines: x.count, Tenure: serving.Rented,
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
				To: serving.StageID(e.to), FanOut: e.meanItems(usualLevel),
			})
		}
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: x.model.name, Stage: serving.StageID(s), Accuracy: 1, MaxBatch: x.model.largest,
		})
		on := map[serving.DeviceTypeID]float64{p100: 1, v100: x.model.v100}
		if x.model.cpu {
			on = map[serving.DeviceTypeID]float64{cpu: 1}
		}
		for d := range serving.DeviceTypeID(typeCount) {
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
	for i := range m.Latency {
		m.Latency[i].StdDev = time.Duration(scatter * float64(m.Latency[i].Mean))
	}
	out, err := reproduce.NewEnvironment(spec, m, profile.Mean, truth.Lognormal)
	if err == nil {
		out.Solver, out.Measured = solver, &m
	}
	return out, err
}
