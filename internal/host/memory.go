package host

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// sized returns a copy in which variants whose memory the file does not say have what a profile measured: the most of
// all device types, and for each item what the largest batch took beyond the model. Device types whose workers keep
// spare processes have that much less memory for variants.
func (o *Opened) sized(f *profiler.File) *Opened {
	if len(f.Memory) == 0 && len(f.Spares) == 0 {
		return o
	}
	out, tables, spec := *o, *o.tables, *o.tables.Spec
	spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
	for id := range spec.DeviceTypes {
		d := &spec.DeviceTypes[id]
		if d.MemoryBytes == 0 || d.Accelerators > 0 || !o.keepsSpares(serving.DeviceTypeID(id)) {
			continue
		}
		for _, x := range f.Spares {
			if x.DeviceType == d.Name {
				d.MemoryBytes = max(1, d.MemoryBytes-x.Bytes)
			}
		}
	}
	spec.Variants = slices.Clone(spec.Variants)
	for id := range spec.Variants {
		v := &spec.Variants[id]
		if !o.tables.Variants[id].Unsized {
			continue
		}
		loaded, item := f.MemoryOf(v.Name)
		if loaded > 0 {
			v.MemoryBytes, v.ItemBytes = loaded, item
		}
	}
	tables.Spec = &spec
	out.tables = &tables
	return &out
}

// keepsSpares reports whether workers of a device type keep spare processes for models in Python.
func (o *Opened) keepsSpares(d serving.DeviceTypeID) bool {
	for w := range o.tables.Backends {
		if o.Spec().Workers[w].DeviceType == d && o.tables.Backends[w].SpareProcesses > 0 {
			return true
		}
	}
	return false
}
