package cli

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// site is where variants are measured: a worker of a device type, or so many threads of one as a part has.
type site struct {
	device       serving.DeviceTypeID
	worker       serving.WorkerID
	variants     []serving.VariantID
	slots, cores int
}

// sites lists the device types that have a worker, in the order of the workers, and then the parts, with what is to be
// measured on each. What is left out and why stands in left, a sentence for each part.
func (w *world) sites() (out []site, left []string) {
	seen := make(map[serving.DeviceTypeID]bool)
	for at := range w.Backends {
		id := serving.WorkerID(at)
		d := w.Spec.Workers[at].DeviceType
		if seen[d] {
			continue
		}
		seen[d] = true
		s := site{device: d, worker: id, variants: w.placed(id)}
		for _, i := range w.Placement {
			if i.Worker == id {
				s.slots, s.cores = max(s.slots, i.Slots), max(s.cores, i.Cores)
			}
		}
		if all := w.Spec.DeviceTypes[d].Cores; all > 0 && !systems.Written(w.system.Planner) {
			s.cores = all // a run has the whole worker, or shares it
		}
		out = append(out, s)
	}
	for d := range w.Spec.DeviceTypes {
		t := &w.Spec.DeviceTypes[d]
		if !t.Part {
			continue
		}
		s, why := w.partSite(serving.DeviceTypeID(d))
		if why != "" {
			left = append(left, fmt.Sprintf("part %q is not measured: %s", t.Name, why))
			continue
		}
		out = append(out, s)
	}
	return out, left
}

// partSite finds where a part is measured: on the first worker with room for it that gives out threads as it is told.
func (w *world) partSite(d serving.DeviceTypeID) (s site, why string) {
	t := &w.Spec.DeviceTypes[d]
	if t.Percent > 0 {
		return s, fmt.Sprintf("%d %% of an accelerator cannot be given out here; measure where it can be, and list "+
			"the profile with rows of this device_type", t.Percent)
	}
	hosts := w.Spec.Hosts(d)
	if len(hosts) == 0 {
		return s, "it fits on no worker"
	}
	s = site{device: d, worker: serving.None, slots: 1, cores: t.Cores}
	for _, at := range hosts {
		if w.Backends[at].Kind != "openinference" {
			s.worker = at
			break
		}
	}
	if s.worker == serving.None {
		return s, "it fits only on workers that other servers run, which give out their threads as they like"
	}
	for v := range w.Spec.Variants {
		if x := &w.Spec.Variants[v]; t.MemoryBytes == 0 || x.MemoryBytes+x.ItemBytes <= t.MemoryBytes {
			s.variants = append(s.variants, serving.VariantID(v))
		}
	}
	if len(s.variants) == 0 {
		return s, "its memory holds no variant"
	}
	return s, ""
}

// partsKnown tells whether something is believed of every part that can be measured.
func (w *world) partsKnown() bool {
	sites, _ := w.sites()
	for _, s := range sites {
		if !w.Spec.DeviceTypes[s.device].Part {
			continue
		}
		known := false
		for _, v := range s.variants {
			known = known || w.profile.Latency(v, s.device, 1, 1) < profile.Unknown
		}
		if !known {
			return false
		}
	}
	return true
}
