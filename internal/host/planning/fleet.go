package planning

import (
	"errors"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Fleet is the fleet of a configuration with other workers.
type Fleet struct {
	name     string // of the change; empty for the fleet as it is
	profiled *host.Profiled
	change   []int              // workers by DeviceTypeID; nil for none
	moved    []serving.WorkerID // by WorkerID before; nil for none
}

// Changed returns a fleet with change[d] more workers of every device type d, fewer if negative. name is its name in
// reports. It fails when more workers are removed than there are.
func Changed(p *host.Profiled, name string, change []int) (Fleet, error) {
	f := Fleet{name: name, change: change}
	var err error
	if f.profiled, f.moved, err = p.Resized(change); err != nil {
		return f, err
	}
	if len(f.profiled.Spec().Workers) == 0 {
		return f, errors.New("no worker would be left")
	}
	return f, nil
}

// Unmeasured returns the names of the device types of added workers that no plan can use, since no variant was measured
// on them.
func (f *Fleet) Unmeasured() (out []string) {
	spec := f.profiled.Spec()
	for d, n := range f.change {
		known := n <= 0
		for v := range spec.Variants {
			known = known || f.profiled.Latencies().Latency(serving.VariantID(v), serving.DeviceTypeID(d), 1, 1) <
				profile.Unknown
		}
		if !known {
			out = append(out, spec.DeviceTypes[d].Name)
		}
	}
	return out
}

// snapshot returns the snapshot of this fleet while the instances of a plan run that was made for spec, before the
// change. Instances on removed workers are left out.
func (f *Fleet) snapshot(spec *serving.Spec, p *plan.Plan) *fleet.Snapshot {
	out := &fleet.Snapshot{Seq: 1}
	seen := make(map[serving.WorkerID]int32)
	for n, i := range p.Instances {
		worker := i.Worker
		if f.moved != nil {
			if worker = f.moved[i.Worker]; worker == serving.None {
				continue
			}
		}
		seen[worker]++
		place := i.Place
		if place == 0 {
			place = seen[worker]
		}
		x := fleet.InstanceSnapshot{ID: serving.InstanceID(n + 1), Key: fleet.Key{Worker: worker, Ordinal: place},
			DeviceType: i.DeviceType(spec),
			Stage:      i.Stage, State: fleet.Ready, Slots: i.Slots, Cores: i.Cores, Accelerator: i.Accelerator,
			Share: i.Share}
		for _, l := range i.Variants {
			x.Variants = append(x.Variants, fleet.Loaded{Variant: l.Variant, Limit: l.Limit, Warm: true, Wanted: true})
		}
		out.Instances = append(out.Instances, x)
	}
	return out
}
