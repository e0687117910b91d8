package machines

import (
	"fmt"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/serving"
)

// Site is a place to measure variants: a worker of a device type, or as many threads of a worker as a part has.
type Site struct {
	Device       serving.DeviceTypeID
	Worker       serving.WorkerID
	Variants     []serving.VariantID
	slots, Cores int
}

// Sites lists the sites of device types that have a worker, in the order of the workers, and then of parts, each with
// its variants. left has a sentence with the reason for each part that cannot be measured.
func (f *Fleet) Sites() (out []Site, left []string) {
	spec := f.Tables.Spec
	seen := make(map[serving.DeviceTypeID]bool)
	for at := range f.Tables.Backends {
		id := serving.WorkerID(at)
		d := spec.Workers[at].DeviceType
		if seen[d] {
			continue
		}
		seen[d] = true
		s := Site{Device: d, Worker: id, Cores: spec.DeviceTypes[d].Cores}
		s.Variants = f.placed(func(i *config.Instance) bool { return spec.Workers[i.Worker].DeviceType == d })
		for _, i := range f.Tables.Placement {
			if i.Worker == id && i.Part == 0 {
				s.slots = max(s.slots, i.Slots)
			}
		}
		out = append(out, s)
	}
	for d := range spec.DeviceTypes {
		t := &spec.DeviceTypes[d]
		if !t.Part || t.Placed && !f.Written {
			continue
		}
		s, why := f.partSite(serving.DeviceTypeID(d))
		if why != "" {
			left = append(left, fmt.Sprintf("part %q is not measured: %s", t.Name, why))
			continue
		}
		out = append(out, s)
	}
	return out, left
}

// partSite returns the site of a part: the first worker with room for it whose threads this process controls.
func (f *Fleet) partSite(d serving.DeviceTypeID) (s Site, why string) {
	spec := f.Tables.Spec
	t := &spec.DeviceTypes[d]
	if t.Percent > 0 {
		return s, fmt.Sprintf("%d %% of an accelerator cannot be given out here; measure where it can be, and list "+
			"the profile with rows of this device_type", t.Percent)
	}
	hosts := spec.Hosts(d)
	if len(hosts) == 0 {
		return s, "it fits on no worker"
	}
	s = Site{Device: d, Worker: serving.None, slots: 1, Cores: t.Cores}
	for _, c := range f.Tables.Cuts {
		if c.Part == d {
			s.slots, s.Cores = c.Slots, c.Cores
		}
	}
	for _, at := range hosts {
		if kind := f.Tables.Backends[at].Kind; kind != kindRemote && kind != kindSupplied {
			s.Worker = at
			break
		}
	}
	if s.Worker == serving.None {
		return s, "it fits only on workers that other servers run, which give out their threads as they like"
	}
	if t.Placed {
		s.Variants = f.placed(func(i *config.Instance) bool { return i.Part == int32(d)+1 })
		return s, ""
	}
	for v := range spec.Variants {
		if x := &spec.Variants[v]; t.MemoryBytes == 0 || x.MemoryBytes+x.ItemBytes <= t.MemoryBytes {
			s.Variants = append(s.Variants, serving.VariantID(v))
		}
	}
	if len(s.Variants) == 0 && len(spec.Variants) > 0 {
		return s, "its memory holds no variant"
	}
	return s, ""
}

// placed lists the variants that the chosen instances of the placement are to load.
func (f *Fleet) placed(chosen func(*config.Instance) bool) (out []serving.VariantID) {
	has := make(map[serving.VariantID]bool)
	for n := range f.Tables.Placement {
		if i := &f.Tables.Placement[n]; chosen(i) {
			for _, v := range i.Variants {
				has[v] = true
			}
		}
	}
	for v := range f.Tables.Spec.Variants {
		if has[serving.VariantID(v)] {
			out = append(out, serving.VariantID(v))
		}
	}
	return out
}
