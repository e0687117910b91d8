package simtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// addParts adds parts of machines to every other cluster: some threads and a share of an accelerator, slower than the
// whole. It draws from a random source of its own, so that the other random choices do not change.
func addParts(spec *serving.Spec, m *serving.Measurements) {
	rng := rand.New(rand.NewPCG(uint64(m.Latency[0].Mean), uint64(len(spec.Workers))))
	if rng.IntN(2) == 0 {
		return
	}
	machines := len(spec.DeviceTypes)
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].Accelerators = rng.IntN(3)
	}
	for p := range 1 + rng.IntN(3) {
		id := serving.DeviceTypeID(len(spec.DeviceTypes))
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("part%d", p), Part: true, Cores: 1 + rng.IntN(2), Percent: 40 * rng.IntN(3),
		})
		like := serving.DeviceTypeID(rng.IntN(machines))
		for _, x := range m.Latency {
			if x.DeviceType == like {
				m.Latency = append(m.Latency, Point(x.Variant, id, x.Items, x.Concurrency, 2*x.Mean, x.StdDev))
			}
		}
		for _, x := range m.Load {
			if x.DeviceType == like {
				m.Load = append(m.Load, serving.LoadPoint{Variant: x.Variant, DeviceType: id, Load: x.Load / 2})
			}
		}
	}
}

// assignParts gives some instances of a plan a part of their worker, as far as there is room. In the next plan it
// chooses other instances.
func assignParts(p *plan.Plan, spec *serving.Spec) {
	rng := rand.New(rand.NewPCG(6, p.Snapshot))
	var parts []serving.DeviceTypeID
	for d, t := range spec.DeviceTypes {
		if t.Part {
			parts = append(parts, serving.DeviceTypeID(d))
		}
	}
	for n := range p.Instances {
		i := &p.Instances[n]
		if len(parts) == 0 || rng.IntN(2) == 0 {
			continue
		}
		i.Part = 1 + int32(parts[rng.IntN(len(parts))])
		if a := spec.DeviceTypes[spec.Workers[i.Worker].DeviceType].Accelerators; a > 0 &&
			spec.DeviceTypes[i.Part-1].Percent > 0 {
			i.Accelerator = int32(rng.IntN(a))
		}
		if p.Validate(spec) != nil {
			i.Part, i.Accelerator = 0, 0
		}
	}
}
